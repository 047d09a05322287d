"""Every algorithm beside its transcription into NumPy, round by round: decisions, stops, answers and estimates.

The cases of a family lie in the module of its name; each builds two tapes.
"""

import pytest
from transcriptions import cpe, fullbandit, kcenter, kernel, linear, mab, plays, semi_bandits

from jaxbandits.testing import first_difference

FAMILIES = {
    "cpe": cpe,
    "fullbandit": fullbandit,
    "kcenter": kcenter,
    "kernel": kernel,
    "linear": linear,
    "mab": mab,
    "semi_bandits": semi_bandits,
    "plays": plays,
}
CASES = [
    pytest.param(case, id=f"{family}: {name}", marks=pytest.mark.xdist_group(f"transcriptions of {family}"))
    for family, module in FAMILIES.items()
    for name, case in module.CASES.items()
]


@pytest.mark.parametrize("case", CASES)
def test_pull_by_pull(case):
    laid = case()
    tolerances = {"tolerance": laid.tolerance, "absolute_tolerance": laid.absolute_tolerance}
    difference = first_difference(laid.theirs, laid.ours, **tolerances)
    assert difference is None, difference
