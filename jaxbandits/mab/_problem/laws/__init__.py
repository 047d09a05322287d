"""Laws of the rewards of an arm: a file for each, with its problem and the functions that depend on it."""
