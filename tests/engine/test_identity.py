"""The identity of a program: no sweep may get the program of another, however alike their sources are."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, Count, counter, total
from jax.sharding import Mesh

import jaxbandits
from jaxbandits.base import Algorithm, Decision, memoryless
from jaxbandits.engine.programs.identity import identity
from jaxbandits.engine.sweep import program
from jaxbandits.engine.sweep.layout import OpenLayout
from jaxbandits.engine.sweep.tasks import make_job

SETTINGS = {"seeds": 2, "key": KEY, "max_rounds": 1000, "metrics": total}
TINY = SETTINGS | {"lanes": 3, "chunk": 16, "progress": False}
SCALE, MODULE_LIMIT = 1.0, 5


def name_of(build):
    return program.trace(make_job(build, LIMITS, **SETTINGS), OpenLayout(3, 16), tasks=2).name


def answering(scale):
    """Makes an environment that multiplies its noise by what the function `scale` returns when it is traced."""
    return memoryless(NOISE.noise, lambda action, noise: action.astype(float) * noise * scale())


def by_closure(value):
    return lambda limit, key: (counter(limit), answering(lambda: value))


def by_nested_closure(value):
    inner = {"values": [None, (value,)]}
    return lambda limit, key: (counter(limit), answering(lambda: inner["values"][1][0]))


def by_global(value):
    def build(limit, key):
        globals()["SCALE"] = value
        return counter(limit), answering(lambda: SCALE)

    return build


def by_default(value):
    def build(limit, key, scale=value):
        return counter(limit), answering(lambda: scale)

    return build


def by_keyword_default(value):
    def build(limit, key, *, scale=value):
        return counter(limit), answering(lambda: scale)

    return build


def by_partial(value):
    def build(scale, limit, key):
        return counter(limit), answering(lambda: scale)

    return functools.partial(build, value)


class Study:
    def __init__(self, scale):
        self.scale = scale

    def build(self, limit, key):
        return counter(limit), answering(lambda: self.scale)

    def __call__(self, limit, key):
        return self.build(limit, key)


def by_method(value):
    return Study(value).build


def by_object(value):
    return Study(value)


def by_class(value):
    class Changing:
        scale = value

    return lambda limit, key: (counter(limit), answering(lambda: Changing.scale))


def by_inner_function(value):
    factor = functools.lru_cache(lambda: value)
    return lambda limit, key: (counter(limit), answering(jax.jit(lambda: jnp.asarray(factor(), float))))


WAYS = [
    by_closure,
    by_nested_closure,
    by_global,
    by_default,
    by_keyword_default,
    by_partial,
    by_method,
    by_object,
    by_class,
    by_inner_function,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_value_that_build_reads_is_part_of_the_name(way):
    name = name_of(way(0.5))
    assert name is not None
    assert name_of(way(0.5)) == name
    assert name_of(way(0.25)) != name


TABLE = np.linspace(0.0, 1.0, 4)
OTHERS = {
    "sign of zero": (lambda x, y: x * 0.0, lambda x, y: x * -0.0),
    "last bit": (lambda x, y: x * 0.1, lambda x, y: x * np.nextafter(0.1, 1)),
    "NaN": (lambda x, y: x * np.nan, lambda x, y: x * 0.0),
    "True and 1": (lambda x, y: True, lambda x, y: 1),
    "1 and 1.0": (lambda x, y: 1, lambda x, y: 1.0),
    "precision": (lambda x, y: np.float32(1), lambda x, y: np.float64(1)),
    "weak type": (lambda x, y: np.float64(1), lambda x, y: 1.0),
    "order of operands": (lambda x, y: x - y, lambda x, y: y - x),
    "order of results": (lambda x, y: (x, y), lambda x, y: (y, x)),
    "operation": (jnp.maximum, jnp.minimum),
    "parameter": (lambda x, y: jnp.sum(x, axis=0), lambda x, y: jnp.cumsum(x, axis=0)[-1]),
    "small array": (lambda x, y: x * TABLE, lambda x, y: x * TABLE[::-1].copy()),
    "large array": (lambda x, y: x * np.arange(2e4)[:, None], lambda x, y: x * (np.arange(2e4) + 1)[:, None]),
    "branches": (
        lambda x, y: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, y),
        lambda x, y: jax.lax.cond(x[0] > 0, jnp.cos, jnp.sin, y),
    ),
    "constant in a loop": (
        lambda x, y: jax.lax.fori_loop(0, 3, lambda _, x: x * 2.0, x),
        lambda x, y: jax.lax.fori_loop(0, 3, lambda _, x: x * 3.0, x),
    ),
    "turns": (
        lambda x, y: jax.lax.fori_loop(0, 3, lambda _, x: x * 2.0, x),
        lambda x, y: jax.lax.fori_loop(0, 4, lambda _, x: x * 2.0, x),
    ),
    "function inside": (lambda x, y: jax.jit(jnp.sin)(x), lambda x, y: jax.jit(jnp.cos)(x)),
    "precision of a product": (jnp.dot, functools.partial(jnp.dot, precision="highest")),
}


@jax.custom_jvp
def doubled(x):
    return 2 * x


doubled.defjvp(lambda x, dx: (doubled(*x), 2 * dx[0]))


def identity_of(function):
    jaxpr = jax.make_jaxpr(lambda x, y: function(x, y))(jnp.ones(4), jnp.zeros(4))
    return identity(jaxpr.jaxpr, jaxpr.consts)


@pytest.mark.parametrize("pair", OTHERS.values(), ids=OTHERS)
def test_programs_that_differ_have_other_identities(pair):
    one, other = map(identity_of, pair)
    assert one is not None
    assert identity_of(pair[0]) == one
    assert one != other


def test_equal_programs_have_equal_identities_whatever_their_source():
    def with_unread_result(x, y):
        jnp.exp(y)
        return jax.lax.mul(x, y)

    assert identity_of(with_unread_result) == identity_of(lambda a, b: jax.lax.mul(a, b))
    assert identity_of(lambda x, y: doubled(x)) == identity_of(lambda x, y: doubled(x))


def test_call_back_to_python_has_no_identity():
    def call(x, y):
        return jax.pure_callback(np.negative, x, x)

    assert identity_of(call) is None


def test_array_that_changes_in_place_changes_the_name():
    scale = np.ones(3)
    build = lambda limit, key: (counter(limit), answering(lambda: scale[1]))  # noqa: E731
    name = name_of(build)
    scale[1] = 2
    assert name_of(build) != name


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")  # the tasks have 64 bits
def test_precision_and_shapes_are_part_of_the_name():
    job = make_job(by_closure(1.0), LIMITS, **SETTINGS)
    lane = program.trace(job, OpenLayout(3, 16), tasks=2)
    with jax.enable_x64(False):
        short = program.trace(job, OpenLayout(3, 16), tasks=2)
        assert short.name != lane.name
    longer = program.trace(job, OpenLayout(3, 17), tasks=2)
    assert longer.name != lane.name


def decide_by_global(key, state):
    coin = jax.random.bernoulli(key).astype(int)  # drawn for a whole chunk, by a half of its own
    return Decision(jnp.ones((), int), state.pulls >= MODULE_LIMIT, coin)


FIXED = Algorithm(
    init=lambda key: Count(jnp.zeros((), int), jnp.zeros(()), jnp.zeros((), int)),
    decide=decide_by_global,
    observe=lambda state, action, reward: state._replace(pulls=state.pulls + action, total=state.total + reward),
    idle=jnp.zeros((), int),
)


def test_a_global_is_read_anew_although_all_functions_are_the_same(monkeypatch):
    build = lambda limit, key: (FIXED, NOISE)  # noqa: E731
    for limit in (5, 8):
        monkeypatch.setitem(globals(), "MODULE_LIMIT", limit)
        assert set(jaxbandits.sweep(build, **TINY).columns["pulls"]) == {limit}
        assert jaxbandits.run(KEY, FIXED, NOISE, max_rounds=100).pulls == limit


def test_sweeps_of_one_source_have_their_own_results():
    """Checks whole sweeps: other values, 32 bit, another device, large arrays, and at last the first one again."""

    def totals(way, value, limits=LIMITS, **changes):
        return jaxbandits.sweep(way(value), limits, **TINY | changes).columns["total"]

    def by_large_array(value):
        table = np.full(2**17, value)
        return lambda limit, key: (
            counter(limit),
            memoryless(NOISE.noise, lambda action, noise: noise * action.astype(float) * jnp.asarray(table)[action]),
        )

    ones = totals(by_closure, 1.0)
    np.testing.assert_array_equal(totals(by_closure, 2.0), 2 * ones)
    np.testing.assert_array_equal(totals(by_method, -1.0), -ones)
    np.testing.assert_array_equal(totals(by_closure, 1.0, mesh=Mesh(np.array(jax.devices()[1:]), ("x",))), ones)
    with jax.enable_x64(False):
        short = totals(by_closure, 1.0, np.asarray(LIMITS, np.int32))
    assert short.dtype == np.float32
    np.testing.assert_array_equal(totals(by_large_array, 1.0), ones)
    np.testing.assert_array_equal(totals(by_large_array, 4.0), 4 * ones)
    np.testing.assert_array_equal(totals(by_closure, 1.0), ones)


def test_rows_with_other_values_share_a_program_and_not_their_results():
    build = by_closure(1.0)
    for limits in (LIMITS, LIMITS[::-1], LIMITS + 1):
        results = jaxbandits.sweep(build, limits, **TINY)
        np.testing.assert_array_equal(results.columns["pulls"], np.repeat(limits, 2))


def test_kept_programs_hold_no_object_of_the_user():
    class Owner:
        def __init__(self):
            self.scale, self.table = 1.0, np.ones(2**17)

    def sweep_of(owner):
        def build(limit, key):
            array = jnp.asarray(owner.table)
            return counter(limit), answering(lambda: owner.scale * array[3])

        return jaxbandits.sweep(build, LIMITS, **TINY)

    owner = Owner()
    watched = weakref.ref(owner), weakref.ref(owner.table)
    sweep_of(owner)
    del owner
    gc.collect()
    assert [each() for each in watched] == [None, None]
