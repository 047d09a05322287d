"""Complexity, bounds and diagnostics, which no algorithm needs while it runs."""
