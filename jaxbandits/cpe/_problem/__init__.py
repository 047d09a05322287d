"""Problems that a learner may know, instances with the truth, and the environment."""
