"""Linear bandits by likelihood ratios: the experiments."""
