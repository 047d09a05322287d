"""Complexity, bounds and diagnostics of a state, which no algorithm needs while it runs."""
