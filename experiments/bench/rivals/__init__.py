"""Rules of this library and the same as its user would write them, for the bench `baseline`.

The instances have so small a lead, or delta is so small, that no run stops: the figures are costs of a round.
"""

from experiments.bench.rivals import families, mab
from experiments.bench.rivals.rival import Rival

# Why a rule misses its aim, in core-ns of a round by the kernels that XLA:CPU made (JAX 0.10.2; Intel Xeon, but IMED
# AMD EPYC).
REASONS = {
    ("IMED", "Bernoulli, K = 4"): "of 26, relative entropies take 16, exact near ties, where NumPy's lose digits",
    ("LinGapE", "soare(5)"): "of 79, gaps and widths take 15, images 10, four rows at an index 11, noise 10",
    ("LinUCB", "soare(5)"): "of 54, images of six arms take 10, noise 9, bounds 7, counts and sums 6",
    ("SAQM, every pull", "it, n = 36"): "all runs make the same pulls, so NumPy inverts one matrix for all of them",
    ("GP-UCB", "Branin, 2000 candidates, 50 rounds"): "2,000 exponentials a round, which NumPy reads from a table",
}


def rivals() -> list[Rival]:
    """Returns a rule of every family, and the simplest ones."""
    made = [*mab.rivals(), *families.rivals()]
    return [rival._replace(reason=REASONS.get((rival.rule, rival.instance), "")) for rival in made]
