"""Problems, which a learner may know, instances with the truth, and the environment that answers."""
