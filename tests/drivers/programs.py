"""Programs that are compiled once for all tests of a file, and comparisons of their results."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.engine.jaxprs import ClosedJaxpr, Jaxpr


def compiled(make: Callable[..., Callable]) -> Callable[..., Callable]:
    """Jits the functions that `make` returns, and makes only one program for every choice of its arguments.

    A value that changes the program (a rule, a flag, a size) is an argument of `make`. Other values (a number, a key,
    an instance) are arguments of the function that it returns.

        @compiled
        def end(rule):
            return lambda key, delta: run(key, RULES[rule](delta), ENVIRONMENT, max_rounds=100)

        end("greedy")(key, 0.1)
    """

    @functools.cache
    def of(*choices, **named):
        return jax.jit(make(*choices, **named))

    return functools.wraps(make)(of)


def wide_except(names, *always):
    """Returns one parameter per name. Names not in `always` are tested with the wide tests only."""
    assert set(always) < set(names)
    return [pytest.param(name, marks=[] if name in always else [pytest.mark.wide]) for name in names]


def leaves(tree):
    """Returns the leaves as NumPy arrays; a key becomes its data."""
    return [np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in jax.tree.leaves(tree)]


def _is_key(leaf) -> bool:
    return jnp.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key)


def assert_same(a, b):
    """Asserts that both have one structure and, in every leaf, the same numbers."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def differ(a, b) -> bool:
    """True if some leaf differs."""
    return any(not np.array_equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))


def program_of_a_round(algorithm, environment) -> ClosedJaxpr:
    """Returns the traced program of one round, with its plan and its refresh; raises where it promotes a rank."""

    def one_round(key):
        state = algorithm.init(key)
        state = state if algorithm.plan is None else algorithm.plan(key, state)
        is_stale = None if algorithm.stale is None else algorithm.stale(state)
        decision = algorithm.decide(key, state)
        answered = environment.respond((), decision.action, environment.noise(key))[0]
        state = algorithm.observe(state, decision.action, answered)
        return decision, is_stale, state, None if algorithm.refresh is None else algorithm.refresh(state)

    with jax.numpy_rank_promotion("raise"):
        return jax.make_jaxpr(one_round)(jax.random.key(0))


def primitives_of_a_round(algorithm, environment) -> set[str]:
    """Returns the names of all operations of one round and of its plan; "while" is a loop of unknown length."""
    return set(_primitives(program_of_a_round(algorithm, environment).jaxpr))


def _primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: isinstance(x, (Jaxpr, ClosedJaxpr))):
            if isinstance(inner, (Jaxpr, ClosedJaxpr)):
                yield from _primitives(getattr(inner, "jaxpr", inner))
