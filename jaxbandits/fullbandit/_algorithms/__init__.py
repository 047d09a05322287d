"""Algorithms of the family, one per file."""
