"""Best arms of linear bandits: the experiments."""
