"""An option that another one switches off is refused by name, not ignored."""

from functools import partial

import numpy as np
import pytest

from jaxbandits import fullbandit, kcenter, kernel

ARMS = np.eye(3)
SUMS = partial(fullbandit.sa_foa, fullbandit.make_design(fullbandit.all_superarms(4, 2), 2), delta=0.1, epsilon=0.1)
NOISY = partial(kcenter.ns_tands, kcenter.Distances(7, 4), delta=0.1, noise_scale=0.1)
COINS = partial(kcenter.ns_ts, kcenter.Distances(7, 4, "bernoulli"), delta=0.1)

GP = {"kernel": kernel.paper_kernel("branin"), "horizon": 9, "noise_variance": 0.1}


@pytest.mark.parametrize(
    ("call", "option", "value", "because"),
    [
        (partial(kernel.gp_ucb, np.eye(2), confidence=lambda t, log_det: log_det, **GP), "beta", 0.0, "confidence"),
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
