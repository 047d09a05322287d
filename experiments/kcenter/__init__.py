"""Greedy k-center from noisy distances: the experiments."""
