"""Rules of this library and the same as its user would write them, for the bench `baseline`.

The instances have so small a lead, or delta is so small, that no run stops: the figures are costs of a round.
"""

from experiments.bench.rivals import families, mab
from experiments.bench.rivals.rival import Rival

# Why a rule misses its aim, in core-ns of a round by the kernels that XLA:CPU made (JAX 0.10.2, Intel Xeon).
REASONS = {
    ("UCB1", "Gaussian, K = 4"): "of 23, a normal number and its key take 9, roots and quotients 8",
    ("UCB1", "Bernoulli, K = 4"): "of 23, roots and quotients take 7, noise 5, logarithms 2, ties 3",
    ("Thompson", "Gaussian, K = 4"): "of 41, two pairs of normal numbers and four hashes take half",
    ("KL-UCB", "Gaussian, K = 4"): "of 26, a normal number takes 9, roots and quotients 10, logarithms 4",
    ("IMED", "Bernoulli, K = 4"): "of 55, twelve logarithms take 35",
    ("MOSS", "Bernoulli, K = 4"): "of 24, logarithms, roots and quotients of four arms take 11, noise 5",
    ("LinGapE", "soare(5)"): "of 83, gaps and widths take 15, images 10, four rows at an index 11, noise 10",
    ("LinUCB", "soare(5)"): "of 57, images of six arms take 10, noise 10, bounds 7",
    ("DS-UCB", "crops, n = 100"): "a third of a round are the intervals after each of the 16 queries of a leap",
    ("SAQM, every pull", "it, n = 36"): "all runs make the same pulls, so NumPy inverts one matrix for all of them",
    ("GP-UCB", "Branin, 2000 candidates, 50 rounds"): "2,000 exponentials a round, which NumPy reads from a table",
}


def rivals() -> list[Rival]:
    """Returns a rule of every family, and the simplest ones."""
    made = [*mab.rivals(), *families.rivals()]
    return [rival._replace(reason=REASONS.get((rival.rule, rival.instance), "")) for rival in made]
