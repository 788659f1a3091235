"""The gate's checks, a small pure function each: what a patch changed in, reasons against it out."""
