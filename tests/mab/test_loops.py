"""No rule has a loop of unknown length in a round: a batch would wait for its slowest lane, a GPU for the host."""

from functools import partial

import numpy as np
import pytest
from drivers.programs import primitives_of_a_round

from jaxbandits import mab

TESTED = [mab.uniform, mab.tas, partial(mab.tas, tracking="C"), partial(mab.tas, replan_every=3), mab.ttts, mab.t3c]
TESTED += [mab.ttucb, mab.eb_tc, mab.eb_tci, mab.lucb, mab.kl_lucb, mab.ugape, mab.successive_elimination, mab.lil_ucb]
RULES = [partial(rule, delta=0.1) for rule in TESTED]
RULES += [partial(mab.t3c, delta=0.1, leader_share="ids"), partial(mab.ucb_e, horizon=90, hardness=9.0)]
RULES += [partial(rule, horizon=90) for rule in (mab.successive_rejects, mab.sequential_halving)]
RULES += [partial(rule, horizon=90) for rule in (mab.continuous_rejects, mab.moss)]
RULES += [partial(rule, horizon=90, leap=90) for rule in (mab.successive_rejects, mab.sequential_halving)]
RULES += [mab.ucb1, mab.kl_ucb, mab.imed, mab.bayes_ucb, mab.thompson, mab.moss_anytime]
RULES += [partial(mab.discounted_ucb, discount=0.9), partial(mab.sliding_window_ucb, window=9)]
RULES += [partial(mab.batched_elimination, delta=0.1), partial(mab.batched_elimination, delta=0.1, leap=90)]
RULES += [partial(mab.m_ucb, window=8, threshold=2.0, gamma=0.1)]
OF_ONES = [partial(mab.exp3, gamma=0.1), partial(mab.exp3_ix, eta=0.1, gamma=0.1)]


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_no_round_has_a_loop_of_unknown_length(kind):
    instance = getattr(mab, kind)(np.array([0.5, 0.4, 0.3, 0.1]))
    for rule in RULES + (OF_ONES if kind == "bernoulli" else []):
        algorithm = rule(instance.problem)
        primitives = primitives_of_a_round(algorithm, mab.environment(instance, algorithm))
        assert primitives, rule
        assert "while" not in primitives, rule
