"""Independent arms: the experiments."""
