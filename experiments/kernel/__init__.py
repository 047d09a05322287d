"""Distributed kernel bandits: the experiments."""
