"""Every algorithm beside its transcription into NumPy, round by round: decisions, stops, answers and estimates.

The cases of a family are in the module of its name; each builds two tapes. Every rule and each of its forms is always
tested. The same form on another shape or another draw is tested with the `wide` tests. Rules for independent arms
always observe normal rewards. Some, whose formulas differ most, always observe rewards of other laws, the others with
the `wide` tests.
"""

import pytest
from transcriptions import (
    batches,
    cpe,
    fullbandit,
    kcenter,
    kernel,
    linear,
    linear_budget,
    mab,
    plays,
    questions,
    semi_bandits,
    variances,
)

from jaxbandits.testing import first_difference

FAMILIES = {
    "batches": batches,
    "cpe": cpe,
    "fullbandit": fullbandit,
    "kcenter": kcenter,
    "kernel": kernel,
    "linear": linear,
    "linear_budget": linear_budget,
    "mab": mab,
    "plays": plays,
    "questions": questions,
    "semi_bandits": semi_bandits,
    "variances": variances,
}
# Cases that repeat a form with another shape or other numbers.
AGAIN = {
    "kernel": (
        *("n_kernel_ucb, 12", "n_kernel_ucb, 60, table", "gp_ucb, 60, schedule", "gp_ucb, 20, confidence"),
        *("dis_kernel_ucb, 15", "dis_kernel_ucb, 70, often", "bpe, 60, keep_data True", "bpe, 25, keep_data False"),
        *("bpe, 9, keep_data True", "approx, few", "duets, middle"),
        *("duets, point, other", "duets, narrow", "approx, another kernel's table", "bpe, 9, keep_data False"),
    ),
    "fullbandit": ("sa_foa, weighted, 1", "sa_foa, uniform, 1", "sa_foa, all, 1"),
    "linear": (
        *(
            "xy_adaptive, slow, keep True",
            "xy_adaptive, subgaussian, keep True",
            "xy_adaptive, subgaussian, keep False",
        ),
        *("rage, items", "rage, items, epsilon", "rage, reuse, items", "rage, leader", "fws, items", "peps, items"),
        *("lingape, greedy, 1", "lingape, ratio, 1"),
    ),
    "linear_budget": ("peace, short", "od_linbai, 5", "lin_ts, scale"),
    "kcenter": ("ds_ucb, leap", "ds_ts, leap", "ns_ts, triangle, little noise"),
    "plays": ("combgame, paths", "pfws, paths", "pfws, trees, apart"),
}
BERNOULLI = ("eb_tci", "ttts", "tas-D", "kl_lucb", "ugape", "lil_ucb", "halving", "kl_ucb", "imed")
BERNOULLI += ("exp3", "exp3_ix")
POISSON, EXPONENTIAL = ("eb_tci", "tas-D", "kl_lucb"), ("eb_tc", "ttucb", "kl_ucb")
ALWAYS = {"bernoulli": BERNOULLI, "poisson": POISSON, "exponential": EXPONENTIAL}


def marks(family, name):
    rule, _, rewards = name.partition(", ")
    more = (family == "mab" and rule not in ALWAYS.get(rewards, (rule,))) or name in AGAIN.get(family, ())
    return [pytest.mark.xdist_group(f"transcriptions of {family}"), *([pytest.mark.wide] if more else [])]


CASES = [
    pytest.param(case, id=f"{family}: {name}", marks=marks(family, name))
    for family, module in FAMILIES.items()
    for name, case in module.CASES.items()
]


def test_wide_cases_exist():
    assert all(set(names) <= set(FAMILIES[family].CASES) for family, names in AGAIN.items())


@pytest.mark.parametrize("case", CASES)
def test_algorithm_equals_its_transcription(case):
    laid = case()
    tolerances = {"tolerance": laid.tolerance, "absolute_tolerance": laid.absolute_tolerance}
    difference = first_difference(laid.theirs, laid.ours, **tolerances)
    assert difference is None, difference
