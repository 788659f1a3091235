"""What is known of libraries and frameworks: sources, sinks, sanitizers, forms, entry points."""
