"""The knowledge of a learner, instances with the truth, and the environment that answers."""
