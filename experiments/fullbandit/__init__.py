"""Top-k arms from sums of rewards: the experiments."""
