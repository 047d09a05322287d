"""Bad values for the arguments of every factory: each is refused by a ValueError that names the argument.

Thirty examples per case, a hundred with the `wide` tests. `checks` tests every argument by itself.
"""

import math

import pytest
from contract.cases import CASES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOT_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])
NEGATIVE = st.floats(max_value=-1e-300, allow_nan=False) | NOT_FINITE
NOT_POSITIVE = st.floats(max_value=0.0, allow_nan=False) | NOT_FINITE
NOT_A_COUNT = st.integers(max_value=0)
NOT_A_NAME = st.text(max_size=4) | st.integers()


def outside(low: float, high: float):
    """Draws numbers outside an open interval."""
    return st.floats(max_value=low, allow_nan=False) | st.floats(min_value=high, allow_nan=False) | NOT_FINITE


BAD = {
    "delta": outside(0.0, 1.0),
    "epsilon": NEGATIVE,
    "ridge": NOT_POSITIVE,
    "noise_scale": NOT_POSITIVE,
    "norm_bound": NEGATIVE,
    "radius_scale": NOT_POSITIVE,
    "noise_variance": NOT_POSITIVE,
    "threshold": st.floats(max_value=0.0, allow_nan=False) | st.just(math.nan),
    "oversampling": NOT_POSITIVE,
    "p0": NOT_POSITIVE,
    "jitter": NEGATIVE,
    "lengthscale": st.floats(max_value=0.0, allow_nan=False) | st.just(math.nan),
    "mix": st.floats(max_value=-1e-300, allow_nan=False) | st.floats(min_value=1.0, exclude_min=True) | NOT_FINITE,
    "horizon": NOT_A_COUNT,
    "first_epoch": NOT_A_COUNT,
    "max_inducing": NOT_A_COUNT,
    "cap": NOT_A_COUNT,
    "leap": NOT_A_COUNT,
    "test_every": NOT_A_COUNT,
    "weights_every": NOT_A_COUNT,
    "growth": NOT_POSITIVE,
    "leader_share": outside(0.0, 1.0),
    "lil_epsilon": NEGATIVE,
    "lil_beta": NEGATIVE,
    "lil_lambda": NOT_POSITIVE,
    "lil_delta": outside(0.0, 1.0),
    "exponent": NOT_POSITIVE,
    "slack": NEGATIVE,
    "exploration": NOT_POSITIVE,
    "hardness": NOT_POSITIVE,
    "replan_every": NOT_A_COUNT,
    "epochs": st.lists(st.integers(-5, 60), min_size=1, max_size=4).map(tuple).filter(lambda e: sum(e) != 24),
    "interval": NOT_A_NAME,
    "union": NOT_A_NAME,
    "triangle": NOT_A_NAME,
    "elimination": NOT_A_NAME,
    "design_matrix": NOT_A_NAME,
    "rate": NOT_A_NAME,
    "mode": NOT_A_NAME,
    "reduction": NOT_A_NAME,
    "radius": NOT_A_NAME,
    "posterior": NOT_A_NAME,
    "tracking": NOT_A_NAME,
    "reset": NOT_A_NAME,
    "solver": NOT_A_NAME,
    "observations": NOT_A_NAME,
}
ZERO_IS_GOOD = {
    ("saqm", "growth"),
    ("icb", "growth"),
    ("exhaustive", "growth"),
    ("spectral", "growth"),
    ("xy-static", "ridge"),
    ("xy-static-exact", "ridge"),
    ("xy-static", "growth"),
    ("xy-static-exact", "growth"),
}
KERNELS = ("duets", "dis-kernel-ucb", "approx-dis-kernel-ucb", "n-kernel-ucb", "gp-ucb", "bpe")


def names_of(case):
    return [*case.numbers, *case.choices]


def bad_arguments(case: str):
    """Draws pairs of an argument of the factory and a value that it must refuse."""
    names = [name for name in names_of(CASES[case]) if name in BAD]
    pairs = [st.tuples(st.just(name), NEGATIVE if (case, name) in ZERO_IS_GOOD else BAD[name]) for name in names]
    if case in KERNELS and "beta" in CASES[case].numbers:
        pairs.append(st.tuples(st.just("beta"), NEGATIVE))
    return st.one_of(pairs)


@pytest.mark.parametrize("examples", [30, pytest.param(100, marks=pytest.mark.wide)])
@pytest.mark.parametrize("case", [name for name, case in CASES.items() if set(names_of(case)) & set(BAD)])
def test_bad_values_are_refused_by_name(case, examples):
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(bad_arguments(case))
    def refused(argument):
        name, value = argument
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            CASES[case].make("float64", **{name: value})

    refused()
