"""One task, from its first round to its last."""
