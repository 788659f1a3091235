"""Whether the tests of a change prove it: they fail without the change and pass with it."""
