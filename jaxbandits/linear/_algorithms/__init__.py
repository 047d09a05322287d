"""The algorithms, one per file."""
