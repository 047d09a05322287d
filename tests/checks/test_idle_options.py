"""An option that another one switches off is refused by name, not ignored."""

from functools import partial

import numpy as np
import pytest

from jaxbandits import fullbandit, kcenter, kernel, linear
from jaxbandits.numerics import thresholds

ARMS, GK16 = np.eye(3), thresholds.gk16()
WITH_THRESHOLD = partial(linear.lingape, ARMS, delta=0.1, threshold=GK16)
PROVED = {"delta": 0.1, "norm_bound": 1.0, "horizon": 9}
SUMS = partial(fullbandit.sa_foa, fullbandit.make_design(fullbandit.all_superarms(4, 2), 2), delta=0.1, epsilon=0.1)
NOISY = partial(kcenter.ns_tands, kcenter.Distances(7, 4), delta=0.1, noise_scale=0.1)
COINS = partial(kcenter.ns_ts, kcenter.Distances(7, 4, "bernoulli"), delta=0.1)

GP = {"kernel": kernel.paper_kernel("branin"), "horizon": 9, "noise_variance": 0.1}


@pytest.mark.parametrize(
    ("call", "option", "value", "because"),
    [
        (WITH_THRESHOLD, "norm_bound", 7.0, "a threshold"),
        (WITH_THRESHOLD, "leap_margin", 99.0, "leaps"),
        (partial(linear.lingape, ARMS, delta=0.1), "leap_margin", 7.6, "leaps"),
        (partial(linear.lingape, ARMS, delta=0.1), "leap_noise_scale", 1.0, "leaps"),
        (partial(linear.lingape, ARMS, delta=0.1), "ratios", linear.ratio_tables(ARMS).p, "rule='greedy'"),
        (WITH_THRESHOLD, "ratios", linear.ratio_tables(ARMS).p, "rule='greedy'"),
        (partial(linear.peps, ARMS, threshold=None), "delta", 0.1, "a threshold"),
        (partial(linear.peps, ARMS, threshold=None), "eliminate", "both", "a threshold"),
        (partial(kernel.gp_ucb, np.eye(2), confidence=lambda t, log_det: log_det, **GP), "beta", 0.0, "confidence"),
        *((partial(linear.lin_ts, ARMS, scale=1.0), name, value, "a scale") for name, value in PROVED.items()),
        (NOISY, "mirror_steps", 10, "solver='newton'"),
        (COINS, "posterior", "printed", "Bernoulli noise"),
        (partial(SUMS, mode="all"), "samples", 3, "mode='all'"),
        (partial(SUMS, growth=None), "pull_variance", 2.0, "a growth of None"),
        (partial(SUMS, mode="all", growth=None), "lottery", "draw", "mode='all'"),
    ],
)
def test_option_without_effect_is_refused(call, option, value, because):
    call()
    with pytest.raises(ValueError, match=f"^{option} must be .*{because}"):
        call(**{option: value})


def test_gp_ucb_without_a_width_is_refused():
    with pytest.raises(ValueError, match="^beta must be given where confidence is None, got None"):
        kernel.gp_ucb(np.eye(2), **GP)


def test_lin_ts_without_a_scale_requires_the_options_of_the_proved_radius():
    for name in PROVED:
        with pytest.raises(ValueError, match=f"^{name} must be"):
            linear.lin_ts(ARMS, **(PROVED | {name: None}))
