"""Every public function of the families and of the numerics, called in three ways and in both precisions.

Eagerly, where shapes and trip counts are known; in a program, with every number and array traced that may be; and under
`vmap`, with lanes that differ. What comes back agrees, to rounding, and has the same dtypes.

An algorithm or an environment is built in each way. Its functions are traced here, and run in tests/contract.
"""

import copy
import functools
import importlib.util
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks.calls import Call
from checks.test_mutations import is_key, names_of

from jaxbandits.base import Algorithm, Decision, Environment
from jaxbandits.numerics.thresholds import Evidence

TABLES = ("linear", "fullbandit", "kcenter", "cpe", "kernel", "mab", "numerics")
NEEDS_64_BIT = {
    *("environment, sign", "environment, signs", "environment, replay", "lingape", "lingape, leap"),
    *("xy_oracle", "xy_static_exact"),
}
NEEDS_64_BIT_TOO = {"fullbandit": {"environment"}}
KEY = jax.random.key(1)
CLOSE = {8: {"rtol": 1e-8, "atol": 1e-10}, 4: {"rtol": 2e-3, "atol": 1e-4}}

# Eagerly a linear program on the host tightens these.
OTHER_NUMBERS = {"linear.characteristic_time", "linear.lower_bound"}
# Computed on the host, with the help of programs whose results it reads: not while another one is traced. Their
# docstrings say so. Other functions of the host take what is known, and may be called there.
HOST = {"cpe.find_bi_monotone_violation", "fullbandit.oracle_time", "fullbandit.xy_allocation", "linear.xy_oracle"}
# Arguments that are looked at before anything runs, and refused by name where they are traced.
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "linear": {
        "lazy_tas": ("arms", "spanner"),
        "likelihood_ratio": ("epsilon", "glr_ridge"),
        "ratio_tables": ("arms",),
        "recorded": ("rewards",),
        "reduce_instance": ("instance",),
        "reduce_rank": ("arms",),
        "separated_arms": ("features", "theta", "min_gap"),
        "sphere_pair": ("alpha",),
        "transductive": ("omega",),
        "xy_oracle": ("delta", "noise_scale", "arms", "theta"),
        "yahoo_like": ("ridge", "min_gap"),
    }
    # An epsilon of the stop must be known to be 0.
    | dict.fromkeys(("fws, question", "lingape_glr, question", "uniform, epsilon", "uniform, question"), ("stop",)),
    "fullbandit": {
        "crowd_like": ("average", "best"),
        "exhaustive": ("superarms",),
        "exhaustive_rule": ("superarms",),
        "g_allocation": ("support", "tolerance"),
        "make_design": ("support", "weights"),
        "oracle_time": ("instance", "support"),
        "xy_allocation": ("support", "directions"),
    },
    "kcenter": {
        "pairwise_sums": ("points",),
        "normalised_distances": ("sums",),
        "greedy": ("distances",),
        "greedy_from_points": ("points",),
        "naive_greedy": ("points",),
        "triplet_like": ("sharpness",),
    },
    "cpe": {
        "semi_clucb": ("problem", "cover"),
        "round_robin": ("problem", "cover", "rows"),
        "cucb": ("problem", "cover"),
        "cts": ("problem", "cover"),
        "enumerated": ("rows",),
        "st_paths": ("edges",),
        "spanning_trees": ("edges",),
        "graphic": ("edges",),
        "find_bi_monotone_violation": ("key",),
        "pfws": ("problem", "cover"),
        "combgame": ("problem", "cover"),
        "direction": ("problem",),
        "maximum": ("problem",),
        "small_cover": ("problem",),
        "unit_cover": ("problem",),
        "most_confusing": ("problem",),
        "characteristic_time": ("problem", "means", "noise_scale"),
        "proved_threshold": ("problem",),
        "reward_gaps": ("problem",),
        "exchange_width": ("rows",),
    },
    "kernel": {"Matern": ("nu",)},
    "mab": {
        "gaussian": ("noise_scale", "least_variance"),
        "gaussian, sd": ("noise_scale", "least_variance"),
        "lil_ucb_constants": ("delta",),
        "m_ucb_constants": ("smallest_change",),
    }
    | {"recorded": ("rewards",)}
    | dict.fromkeys(
        (
            "characteristic_time, question",
            "characteristic_time, sd",
            "eb_tc, question",
            "eb_tci, question",
            "t3c, question",
            "tas, question",
        ),
        ("epsilon",),
    ),
    "numerics": {"decompose": ("atoms", "target"), "kl_lucb": ("exponent", "constant"), "Matern": ("nu",)},
}


def evidence(threshold):
    name = threshold.__name__
    kind = name.removesuffix("_mixture")
    needs_variances = name in ("student", "uv_box")
    counts = jnp.asarray([20, 30] if name in ("kk_pair", "kt") or needs_variances or name != kind else [20, 30, 25])
    cost = "adaptive" if needs_variances else None
    statistics = Evidence(
        jnp.asarray(75), counts, cost=cost, log_det=jnp.asarray(2.0), least_eigenvalue=jnp.asarray(9.0)
    )
    return threshold(
        0.1, statistics._replace(sums=jnp.asarray([15.0, 40.0]), law=kind.capitalize() if name != kind else None)
    )


# Calls of functions that are results.
USES = {
    "cpe.proved_threshold": evidence,
    "fullbandit.estimator": lambda estimate: estimate(jnp.arange(1, 6), jnp.linspace(0.0, 1.0, 5)),
    "kcenter.exploration_rate": lambda rate: rate(jnp.asarray(9), jnp.asarray(2), jnp.asarray([3, 4]), jnp.asarray(2)),
    "kernel.log_rate": lambda rate: rate(jnp.asarray(0.5), jnp.asarray(20.0)),
    "kernel.paper_kernel": lambda kernel: kernel(jnp.zeros(2), jnp.ones(2)),
    "linear.likelihood_ratio": lambda stop: jnp.asarray(stop.delta, float),
    "linear.no_stop": lambda stop: stop.items,
    "kernel.round_regret": lambda regret: regret((), Decision(jnp.asarray([1, 3]), jnp.asarray(False), ()), ()),
    "numerics.mirror_ascent": lambda steps: steps.update(jnp.ones(3), steps.init(jnp.zeros(3)), jnp.zeros(3)),
    **{
        f"numerics.{name}": lambda base: base(jnp.asarray([0.5, 0.2, 0.3]))
        for name in ("uniform", "partition", "graphic")
    },
}


@functools.cache  # calls read files of the module
def table(name, bits):
    """Makes the calls of a table, in the present precision."""
    del bits
    path = Path(__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"calls_of_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arrays(name: str, result: Any) -> Any:
    """Returns the arrays of a result, or of the results of its functions."""
    if isinstance(result, Algorithm):
        state = result.init(KEY)
        return state, result.decide(KEY, state)
    if isinstance(result, Environment):
        return result.noise(KEY)
    if name in USES:
        return USES[name](result)
    return evidence(result) if inspect.isfunction(result) else result


def is_number(leaf: Any) -> bool:
    return isinstance(leaf, (float, np.ndarray, np.generic, jax.Array))


def other(leaf: Any) -> Any:
    """Returns another value for a second lane, if the leaf is a key or a free number."""
    if is_key(leaf):
        return jax.random.fold_in(leaf, 1)
    is_one = isinstance(leaf, float) or (is_number(leaf) and np.ndim(leaf) == 0 and leaf.dtype.kind == "f")
    return leaf * 0.98 if is_one else leaf


class Ways(NamedTuple):
    """A call in three ways."""

    eager: tuple[Any, Any]  # results, with the arguments as they are and with others
    is_run: bool  # results hold numbers; otherwise, for results with functions, shapes
    traced: Callable[[Any], Any]
    batched: Callable[[Any], Any]
    lanes: tuple[Any, Any]  # the traced arguments, twice


def ways(name: str, call: Call, known: tuple[str, ...]) -> Ways:
    """Calls it eagerly, and makes functions of the arguments that are traced."""
    free, structure = jax.tree.flatten({key: value for key, value in call.arguments.items() if key not in known})
    places = [index for index, leaf in enumerate(free) if is_number(leaf)]

    def made(leaves: list[Any]) -> Any:
        # A generator is used up by a call.
        fixed = {
            key: copy.deepcopy(x) if isinstance(x, np.random.Generator) else x for key, x in call.arguments.items()
        }
        return call.function(**fixed | jax.tree.unflatten(structure, leaves))

    def traced(values: list[Any]) -> Any:
        leaves = list(free)
        for index, value in zip(places, values, strict=True):
            leaves[index] = value
        return arrays(name, made(leaves))

    def batched(values: list[Any]) -> Any:
        return jax.vmap(traced, axis_size=2)(values) if places else ()

    others = [other(leaf) for leaf in free]
    results = made(free), made(others)
    is_run = not isinstance(results[0], (Algorithm, Environment))
    eager = [arrays(name, x) if is_run else jax.eval_shape(functools.partial(arrays, name, x)) for x in results]
    lanes = tuple([as_array(leaves[index]) for index in places] for leaves in (free, others))
    return Ways(tuple(eager), is_run, traced, batched, lanes)


def as_array(leaf: Any) -> jax.Array:
    """Converts to an array of a strong dtype, unlike a Python number."""
    if is_key(leaf):
        return leaf
    return jnp.asarray(leaf, jax.dtypes.canonicalize_dtype(leaf.dtype if hasattr(leaf, "dtype") else float))


def same(got: Any, expected: Any) -> bool:
    """Compares up to rounding; integers, booleans and keys exactly."""
    if is_key(got):
        got, expected = jax.random.key_data(got), jax.random.key_data(expected)
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype.kind == "f":
        return got.shape == expected.shape and np.allclose(got, expected, equal_nan=True, **CLOSE[got.dtype.itemsize])
    return np.array_equal(got, expected)


def stacked(lanes: tuple[Any, Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *lanes)


@functools.cache
def calls(name: str, bits: int) -> tuple[dict[str, Ways], dict[str, str]]:
    """Returns all calls of a table that succeed, and the errors of the others."""
    made, errors = {}, {}
    with jax.enable_x64(bits == 64):
        for key, call in table(name, bits).CALLS.items():
            try:
                made[key] = ways(f"{name}.{key}", call, KNOWN[name].get(key, ()))
            except Exception as error:
                errors[key] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return made, errors


def kinds(tree: Any, lanes: tuple[int, ...] = ()) -> list[Any]:
    """Shapes and dtypes, of Python's and NumPy's numbers as JAX takes them."""
    leaves = [leaf if hasattr(leaf, "dtype") else np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    is_extended = [jnp.issubdtype(leaf.dtype, jax.dtypes.extended) for leaf in leaves]
    return [
        (lanes + leaf.shape, leaf.dtype if extended else jax.dtypes.canonicalize_dtype(leaf.dtype))
        for leaf, extended in zip(leaves, is_extended, strict=True)
    ]


EVERY = [
    pytest.param(name, bits, marks=[pytest.mark.wide, pytest.mark.thorough] if bits == 32 else [])
    for bits in (64, 32)
    for name in TABLES
]
each = pytest.mark.parametrize(("name", "bits"), EVERY)


@each
def test_a_valid_call_succeeds_eagerly_or_says_what_it_needs(name, bits):
    _, errors = calls(name, bits)
    fine = NEEDS_64_BIT | NEEDS_64_BIT_TOO.get(name, set()) if bits == 32 else set()
    assert {key: error for key, error in errors.items() if key not in fine} == {}
    for error in errors.values():
        assert error.startswith("ValueError: ")
        assert "must be float64" in error or "jax_enable_x64 must be on" in error


@each
def test_shapes_and_dtypes_are_those_of_an_eager_call_in_a_program_and_under_vmap(name, bits):
    wrong = {}
    with jax.enable_x64(bits == 64):
        for key, way in calls(name, bits)[0].items():
            if f"{name}.{key}" in HOST:
                continue
            try:
                one, two = jax.eval_shape(way.traced, way.lanes[0]), jax.eval_shape(way.batched, stacked(way.lanes))
            except Exception as error:
                wrong[key] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                continue
            expected = kinds(way.eager[0])
            if kinds(one) != expected:
                wrong[key] = f"{expected} eagerly, {kinds(one)} in a program"
            elif way.lanes[0] and kinds(two) != kinds(way.eager[0], (2,)):
                wrong[key] = f"{expected} eagerly, {kinds(two)} under vmap"
            elif way.lanes[0] and any(getattr(leaf, "weak_type", False) for leaf in jax.tree.leaves((one, two))):
                wrong[key] = "a weak type"
    assert wrong == {}


@pytest.mark.wide
@pytest.mark.parametrize(("name", "bits"), [(name, 64) for name in TABLES])
def test_numbers_are_those_of_eager_calls_in_a_program_and_under_vmap(name, bits):
    """All calls of a table are one program."""
    made = {key: way for key, way in calls(name, bits)[0].items() if way.is_run and way.lanes[0]}
    made = {key: way for key, way in made.items() if f"{name}.{key}" not in OTHER_NUMBERS}
    with jax.enable_x64(bits == 64):

        def program(lanes):
            return {key: (way.traced(lanes[key][0]), way.batched(stacked(lanes[key]))) for key, way in made.items()}

        traced_results = jax.jit(program)({key: way.lanes for key, way in made.items()})
    wrong = {}
    for key, way in made.items():
        one, two = traced_results[key]
        for index, (first, second) in enumerate(zip(*map(jax.tree.leaves, way.eager), strict=True)):
            traced = jax.tree.leaves(one)[index], *jax.tree.leaves(two)[index]
            for which, expected, got in zip(("jit", "lane 0", "lane 1"), (first, first, second), traced, strict=True):
                if not same(got, expected):
                    wrong[key, index, which] = f"{expected} eagerly, {got}"
    assert wrong == {}


@each
def test_what_must_be_known_is_refused_by_name_where_it_is_traced(name, bits):
    wrong = {}
    with jax.enable_x64(bits == 64):
        for key, arguments in KNOWN[name].items():
            call = table(name, bits).CALLS[key]
            for argument in arguments:
                value = call.arguments[argument]
                end = refusal(functools.partial(with_leaves, call, argument), argument, value)
                if end != "clear":
                    wrong[key, argument] = end
    assert wrong == {}


def with_leaves(call: Call, argument: str, places: Sequence[int], values: Sequence[Any]) -> None:
    leaves, structure = jax.tree.flatten(call.arguments[argument])
    for index, value in zip(places, values, strict=True):
        leaves[index] = value
    call.function(**call.arguments | {argument: jax.tree.unflatten(structure, leaves)})


def refusal(called: Callable[..., None], argument: str, value: Any) -> str:
    """Describes the refusal of a call in which all numbers of an argument are traced."""
    leaves = jax.tree.leaves(value)
    places = [index for index, leaf in enumerate(leaves) if is_number(leaf)]
    try:
        jax.eval_shape(lambda values: called(places, values), [as_array(leaves[index]) for index in places])
    except ValueError as error:
        is_named = any(re.search(rf"\b{word}\b", str(error)) for word in names_of(argument, value))
        return "clear" if is_named else str(error)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return "taken"


@pytest.mark.parametrize("host", sorted(HOST))
def test_what_runs_on_the_host_says_so_and_is_refused_in_a_program(host):
    name, _, key = host.partition(".")
    call, way = table(name, 64).CALLS[key], calls(name, 64)[0][key]
    assert "on the host: it cannot be called while a program is" in " ".join(inspect.getdoc(call.function).split())
    with pytest.raises((jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
        jax.eval_shape(way.traced, way.lanes[0])
