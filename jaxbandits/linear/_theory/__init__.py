"""Complexity, bounds and diagnostics of a state, which no algorithm reads while it runs."""
