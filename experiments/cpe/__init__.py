"""Combinatorial pure exploration: the experiments."""
