"""Every rule, tested after every pull, against its plain transcription."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY, every_state, rewards

from experiments.bench.reference import fullbandit as reference
from jaxbandits import fullbandit

THETA = jnp.array([0.8, 0.1, 0.6, 0.2, 0.5])
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # no two counts over shares ever tie
DESIGN = fullbandit.make_design(fullbandit.random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())
RULES = {  # the tape, the noise that the learner is told of, and its options
    "saqm": (0, 0.05, {}),
    "icb": (1, 0.1, {}),
    "icb, ellipsoid": (1, 0.1, {"radius": "ellipsoid"}),
    "exhaustive": (2, 0.25 / 3, {}),
    "spectral": (3, 0.25 / 3, {}),
}


@pytest.mark.parametrize("name", RULES)
def test_pull_by_pull_it_is_the_transcription(name):
    seed, noise_scale, options = RULES[name]
    name = name.partition(",")[0]
    tape = rewards(THETA, DESIGN.support, 400, seed, scale=0.3)
    settings = {"delta": 0.1, "epsilon": 0.4, "noise_scale": noise_scale} | options
    factory, literal = getattr(fullbandit, name), getattr(reference, name)
    states = every_state(factory(DESIGN, pace=fullbandit.Pace(growth=None), **settings), tape, 2000)[1:]
    support, weights = np.asarray(DESIGN.support), np.asarray(DESIGN.weights)
    if name == "spectral":
        levels = {int(state.pulls): np.min(np.asarray(state.counts) / weights) for state in states}
        settings_of_rule = settings | {"eigenvalue": lambda t: float(DESIGN.spectral) / levels[t]}
    else:
        settings_of_rule = settings

    def rule(*seen):
        return literal(*seen, k=3, **settings_of_rule)

    expected = reference.tests_of(support, weights, np.asarray(tape), rule, len(support))
    assert [tuple(state.counts.tolist()) for state in states] == [test.counts for test in expected]
    assert len(expected) > 20
    decide = jax.jit(factory(DESIGN, **settings).decide)
    for state, test in list(zip(states, expected, strict=True))[-20:]:
        decision = decide(KEY, state)
        assert bool(decision.stop) == test.stop
        assert tuple(np.flatnonzero(decision.answer).tolist()) == test.answer
