"""Every algorithm beside its transcription into NumPy, round by round: decisions, stops, answers and estimates.

The cases of a family lie in the module of its name; each builds two tapes. The bandits without structure hear normal
rewards always; Bernoulli rewards some always, where the formulas differ most, and all of them with the `wide` tests.
"""

import pytest
from transcriptions import cpe, fullbandit, kcenter, kernel, linear, linear_budget, mab, plays, semi_bandits

from jaxbandits.testing import first_difference

FAMILIES = {
    "cpe": cpe,
    "fullbandit": fullbandit,
    "kcenter": kcenter,
    "kernel": kernel,
    "linear": linear,
    "linear_budget": linear_budget,
    "mab": mab,
    "plays": plays,
    "semi_bandits": semi_bandits,
}
BERNOULLI = ("eb_tci", "t3c", "ttts", "tas-D", "kl_lucb", "ugape", "lil_ucb", "halving", "kl_ucb", "imed")


def marks(family, name):
    rule, _, rewards = name.partition(", ")
    more = family == "mab" and rewards == "bernoulli" and rule not in BERNOULLI
    return [pytest.mark.xdist_group(f"transcriptions of {family}"), *([pytest.mark.wide] if more else [])]


CASES = [
    pytest.param(case, id=f"{family}: {name}", marks=marks(family, name))
    for family, module in FAMILIES.items()
    for name, case in module.CASES.items()
]


@pytest.mark.parametrize("case", CASES)
def test_pull_by_pull(case):
    laid = case()
    tolerances = {"tolerance": laid.tolerance, "absolute_tolerance": laid.absolute_tolerance}
    difference = first_difference(laid.theirs, laid.ours, **tolerances)
    assert difference is None, difference
