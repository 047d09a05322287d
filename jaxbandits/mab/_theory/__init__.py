"""Complexity, bounds and readings of a state: what no algorithm needs while it runs."""
