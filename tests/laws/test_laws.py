"""Every rule keeps the symmetries of its problem: it makes the same run under other names, coordinates and units."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from laws.table import ALWAYS, LAWS, Law

import jaxbandits

KEY = jax.random.key(7)


def outcome(case, law, *, is_changed):
    """Runs a case, as it is or changed, on the environment of the first instance."""
    numbers = {name: first * law.factors[name] for name, (first, _) in case.numbers.items() if name in law.factors}
    numbers |= {} if law.shown is None else {"shown": law.shown}
    changed = numbers | law.changed if is_changed else {}
    algorithm, environment = case.make("float64", **law.settings, **changed)

    def noise(key):
        drawn = environment.noise(key)
        return jax.tree.map(jnp.zeros_like, drawn) if law.is_quiet else drawn

    def respond(memory, action, noise):
        if not is_changed:
            return environment.respond(memory, action, noise)
        observation, memory = environment.respond(memory, law.action(action), noise)
        return law.observation(action, observation), memory

    answers = environment._replace(noise=noise, respond=respond, problem=None)
    run = functools.partial(jaxbandits.run, algorithm=algorithm, environment=answers, max_rounds=case.max_rounds)
    return jax.device_get(jax.jit(run)(KEY))


@functools.cache
def first_outcome(name, is_quiet, settings):
    law = Law(is_quiet=is_quiet, settings=dict(settings))
    return outcome(CASES[name], law, is_changed=False)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in ALWAYS else [pytest.mark.wide]) for n in LAWS])
def test_changed_instance_makes_the_changed_run(name):
    name, law = LAWS[name]
    case = CASES[name]
    first = first_outcome(name, law.is_quiet, tuple(law.settings.items()))
    other = outcome(case, law, is_changed=True)
    assert other.status == first.status
    assert other.pulls == first.pulls
    jax.tree.map(np.testing.assert_array_equal, other.answer, law.answer(first.answer))
    if hasattr(first.state, "counts"):
        np.testing.assert_array_equal(other.state.counts, law.counts(first.state.counts))
