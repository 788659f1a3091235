"""The gate's checks: pure functions from a patch to reasons against it."""
