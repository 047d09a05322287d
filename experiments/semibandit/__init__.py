"""Best combinatorial action from semi-bandit plays: the experiments."""
