"""Complexity, bounds and optimal allocations, which no algorithm needs while it runs."""
