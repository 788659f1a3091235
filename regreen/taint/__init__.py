"""Where untrusted values go: an abstract interpreter for Python that follows them from source to sink."""
