"""Every argument of every public function, replaced by invalid values: refused by name before anything is compiled.

So are the fields of structs of options, one at a time. Only here are the type and the range of one argument tested.
What relates two arguments, and messages with content of their own, are tested in the folder of the family.

The valid calls are in the modules beside this file, one table per family. They list mutations that make another valid
value as `fine`.
"""

import importlib
import inspect
import re
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from jaxbandits import cpe, feedback, fullbandit, kcenter, kernel, linear, mab

TABLES = ("linear", "fullbandit", "kcenter", "cpe", "kernel", "mab", "feedback", "rare", "engine", "numerics")
CALLS = {
    f"{table}.{name}": call
    for table in TABLES
    for name, call in importlib.import_module(f"checks.{table}").CALLS.items()
}
FAMILIES = TABLES[:8]
OPTIONS = (
    *(fullbandit.Pace, fullbandit.Sampling, kcenter.KL, kcenter.Lemma1, kcenter.Lil),
    *(kcenter.Dimensions, kcenter.Distances, mab.Bernoulli, mab.Gaussian),
    *(mab.Poisson, mab.Exponential),
    *(cpe.Chen, linear.Leap, linear.Posterior, linear.Proved),
    *(mab.LogFactor, feedback.Geometric),
    *(mab.Above, mab.AllGood, mab.BestArm, mab.GoodArm, mab.TopM),
    *(kernel.SquaredExponential, kernel.Matern),
)
WORD, NUMBER = "no such word", 1.5
# Arguments that may be 0, by name; and such arguments of some functions alone.
ZERO = {
    *("absolute_tolerance", "action", "answer", "base", "beta", "epsilon", "first_center", "forced_offset", "gamma"),
    *(
        "glr_ridge",
        "growth",
        "jitter",
        "least_variance",
        "lil_beta",
        "lil_epsilon",
        "log_det",
        "log_sets",
        "logdet",
        "min_gap",
        "mix",
    ),
    *("norm_bound", "observation", "rho", "row", "seed", "sharpness", "slack", "start"),
    *("feedback.corrupted.budget", "feedback.delayed.delay", "Geometric.mean", "Geometric.most"),
    *("mab.kl_ucb.c", "fullbandit.hardness.gap", "fullbandit.synthetic.gap", "fullbandit.icb_bound.hardness"),
    *("fullbandit.saqm_bound.hardness", "fullbandit.tracking_counts.t", "linear.estimate.ridge", "linear.fws.steps"),
    *("linear.xy_static.ridge", "linear.xy_static_exact.ridge", "cpe.st_paths.s", "numerics.uniform.k", "Growth.share"),
    *("kcenter.clusters.spread", "kcenter.distance_instance.noise_scale", "engine.first_difference.tolerance"),
    *("kernel.anytime_width.noise_scale", "kernel.confidence_width.noise_scale", "kernel.tabular.noise_scale"),
    *(f"kernel.{function}.noise_scale" for function in ("branin", "hartmann4", "h1", "h2", "rkhs")),
}
NOT_ZERO = {"fullbandit.sa_foa.epsilon", "linear.theorem2_bound.norm_bound", "linear.theorem2_ridge_limit.norm_bound"}
NOT_ZERO |= {"mab.exp3.gamma", "mab.exp3_ix.gamma", "mab.m_ucb.gamma"}
NOT_ZERO |= {f"mab.{rule}.start" for rule in ("eb_tc", "eb_tci", "t3c", "tas", "uniform")}
# Numbers of a bounded range, with one that is too large.
TOO_LARGE = dict.fromkeys(("average", "delta", "delta_prime", "discount", "leader_share", "rounding"), 1.0)
TOO_LARGE |= dict.fromkeys(("fullbandit.saqm.alpha", "fullbandit.saqm_rule.alpha", "fullbandit.saqm_bound.alpha"), 1.1)
TOO_LARGE |= {"kcenter.zappos.n": 86, "kcenter.digits.n": 1798, "kcenter.image_crops.size": 428}
TOO_LARGE |= {f"fullbandit.{name}.k": 5 for name in ("all_superarms", "cyclic_support", "random_support", "synthetic")}
TOO_LARGE |= {f"fullbandit.{name}.k": 5 for name in ("ellipsoid_radius", "lemma1_radius", "icb_bound", "saqm_bound")}
TOO_LARGE |= {f"fullbandit.{name}.k": 5 for name in ("from_answers", "make_design")} | {"fullbandit.crowd_like.k": 12}
TOO_LARGE |= {f"kcenter.{name}.k": 7 for name in ("naive_queries", "most_queries", "greedy", "distance_instance")}
TOO_LARGE |= {f"kcenter.{name}.k": 5 for name in ("dimension_instance", "greedy_from_points", "naive_greedy")}
TOO_LARGE |= {"fullbandit.crowdsourcing.k": 36}
TOO_LARGE |= {"k": 100, "mix": 1.5, "best": 1.2, "linear.xy_adaptive.alpha": 1.0, "fullbandit.synthetic.gap": 1.1}
TOO_LARGE |= {"mab.exp3.gamma": 1.1}
TOO_LARGE |= {"union_power": 3, "linear.lingape.leap": 2**21, "linear.peps.draws": 2**16 + 1, "linear.soare.omega": 1.6}
TOO_LARGE |= {"linear.xy_static.growth": 1.0, "linear.xy_static_exact.growth": 1.0, "cpe.perfect_matchings.n": 7}
TOO_LARGE |= {"cpe.top_k.k": 3, "cpe.sites.k": 3, "cpe.table.quota": 5, "cpe.water.demand": 5, "cpe.st_paths.t": 3}
TOO_LARGE |= {"cpe.radius_top_k.k": 3, "tau": 3, "numerics.alpha_dks.k": 6, "numerics.quadratic_maximization.k": 4}
TOO_LARGE |= {"mab.exp3.gamma": 1.1, "mab.m_ucb.gamma": 1.1, "TopM.m": 3}
# Numbers of which a positive one is too small.
TOO_SMALL = dict.fromkeys(
    (
        "K",
        "Bernoulli.arms",
        "Gaussian.arms",
        "Poisson.arms",
        "Exponential.arms",
        "Bounded.arms",
        "linear.soare.d",
        "linear.canonical.d",
    ),
    1,
)
TOO_SMALL |= {"Leap.most": 1, "linear.sphere.d": 1, "cpe.top_k.m": 1, "cpe.best_arm.m": 1, "cpe.oracle.arms": 1}
TOO_SMALL |= {"cpe.complete_graph.nodes": 2, "cpe.complete_graph.bonus": 0.1, "cpe.implicit_time.c": 0.1}
TOO_SMALL |= {"cpe.find_bi_monotone_violation.samples": 1, "numerics.theorem1_ratio.k": 1}
TOO_SMALL |= {"numerics.kl_lucb.exponent": 1, "numerics.kl_lucb.constant": 405}
TOO_SMALL |= {"mab.sliding_window_ucb.window": 2, "mab.m_ucb.window": 1, "mab.batched_elimination.growth": 1}
# Arrays whose entries must not be negative.
UNSIGNED = {"allocation", "ratios", "sizes", "coef", "p", "low", "capacities", "limits", "row_costs", "column_costs"}
UNSIGNED |= {
    "radii",
    "counts",
    "numerics.design.weights",
    "fullbandit.make_design.weights",
    "mab.bernoulli.means",
    "mab.bounded.means",
}
UNSIGNED |= {"cpe.discrete.weights", "cpe.discrete.values", "cpe.constant.values", "numerics.partition.groups"}
# Arrays whose entries must lie in [0, 1].
SHARES = {"p", "low", "cpe.discrete.values", "cpe.constant.values", "mab.bernoulli.means"}
SHARES |= {"cpe.consistent_radius.theta"}
# Functions of `linear` that accept arms which do not span their space.
ANY_RANK = {"lin_ucb", "lin_ts", "lingape", "estimate", "gaps", "hardness_lingape", "hardness_oracle", "hardness_ugape"}
ANY_RANK |= {"hardness_oracle_sum", "pair_directions", "ratio_tables", "reduce_rank", "xy_static", "xy_static_exact"}
THREAD = threading.get_ident()
compiled = []  # programs of this thread only: a thread left by an earlier test may still compile


def note(event: str, seconds: float, **_: Any) -> None:
    """Counts a compiled program."""
    del seconds
    if event.endswith("backend_compile_duration") and threading.get_ident() == THREAD:
        compiled.append(event)


jax.monitoring.register_event_duration_secs_listener(note)


def is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, jax.Array, list)) and np.ndim(value) > 0 and not is_key(value)


def is_key(value: Any) -> bool:
    return isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)


def with_nan(value: Any) -> Any:
    """Returns a copy with a NaN in it."""
    array = np.array(value, float)
    array.flat[array.size // 2] = np.nan
    return array


def is_float(leaf: Any) -> bool:
    return leaf.dtype.kind == "f" if hasattr(leaf, "dtype") and not is_key(leaf) else isinstance(leaf, float)


def mutations(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields (name, value) of the values to try instead of a valid one."""
    yield "none", None
    if isinstance(value, (bool, np.bool_)):
        yield from {"string": WORD, "number": NUMBER, "list": [value]}.items()
    elif isinstance(value, (int, np.integer)) or (getattr(value, "shape", None) == () and not is_key(value)):
        is_whole = isinstance(value, (int, np.integer)) or np.issubdtype(value.dtype, np.integer)
        yield from {"nan": np.nan, "inf": np.inf, "negative": -3 if is_whole else -NUMBER, "string": WORD}.items()
        yield from {"complex": 1j, "list": [value], "array": np.full(1, value), "flag": True}.items()
        if is_whole:
            yield "fraction", NUMBER
    elif isinstance(value, float):
        yield from {"nan": np.nan, "inf": np.inf, "negative": -NUMBER, "string": WORD}.items()
        yield from {"complex": 1j, "list": [value], "array": np.full(1, value), "flag": True}.items()
    elif isinstance(value, str):
        yield from {"string": WORD, "number": NUMBER, "list": [value]}.items()
    elif is_array(value):
        array = np.asarray(value)
        yield from {"string": WORD, "scalar": NUMBER, "complex": array * 1j, "shape": array[None]}.items()
        yield "empty", array[..., :0]
        if array.dtype.kind in "f":
            yield "nan_inside", with_nan(array)
            yield "inf_inside", np.where(np.isnan(with_nan(array)), np.inf, array)
        if array.ndim > 1:
            yield "ragged", [list(row) if n else list(row)[:-1] for n, row in enumerate(array.tolist())]
    elif hasattr(value, "_fields"):
        yield from {"string": WORD, "number": NUMBER, "list": [value]}.items()
        if "k" in value._fields:
            # The first that is too large: of n points n + 1 centers, of n arms all of them.
            large = value.n + 1 if "n" in value._fields else np.shape(value[0])[-1]
            yield from {"k of 1": value._replace(k=1), "k too large": value._replace(k=large)}.items()
        leaves, structure = jax.tree.flatten(value)
        for n, leaf in enumerate(leaves):
            if is_float(leaf):
                yield "nan_inside", jax.tree.unflatten(structure, [*leaves[:n], with_nan(leaf), *leaves[n + 1 :]])
    else:  # a function, a key, a path, a type
        yield from {"string": WORD, "number": NUMBER, "list": [value]}.items()


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the mutations of each field of a struct of options; None is the default of several."""
    for field in value._fields:
        part = getattr(value, field)
        tried = [*mutations(part), *edges(type(value).__name__, field, part)]
        for mutation, mutated in [*tried, *(fields(part) if hasattr(part, "_fields") else ())]:
            if mutation != "none":
                yield f"{field}, {mutation}", value._replace(**{field: mutated})


def entries(name: str, argument: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields arrays with entries of another type or range; for features, too few rows and equal ones."""
    array, names = np.asarray(value), {argument, f"{name.partition(',')[0]}.{argument}"}
    if names & UNSIGNED:
        yield "negative", -array
    if names & SHARES:
        yield "above 1", 1.5 + array
    if array.dtype.kind == "i" and not name.startswith("engine."):
        yield "fractions", 0.5 + array
    if name.startswith("linear.") and argument in ("arms", "items"):
        yield "one row", array[:1]
        yield "equal rows", np.concatenate([array[:-1], array[:1]])
        if argument == "arms" and name.partition(",")[0].partition(".")[2] not in ANY_RANK:
            yield "rank", array * [1.0, 0.0]


def edges(name: str, argument: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the ends of the range of a number, unless they belong to it."""
    is_scalar = isinstance(value, (int, float, np.number)) or getattr(value, "shape", None) == ()
    if isinstance(value, bool) or is_key(value) or not is_scalar:
        return
    full = f"{name.partition(',')[0]}.{argument}"
    if full in NOT_ZERO or not ZERO & {argument, full}:
        yield "zero", type(np.asarray(value).item())(0)
    if {argument, full} & TOO_LARGE.keys():
        yield "large", TOO_LARGE.get(full, TOO_LARGE.get(argument))
    if {argument, full} & TOO_SMALL.keys():
        yield "small", TOO_SMALL.get(full, TOO_SMALL.get(argument))
    if argument in ("k", "n") and full.startswith(("fullbandit.", "kcenter.")):
        yield "one", 1


def names_of(argument: str, value: Any) -> tuple[str, ...]:
    """Returns the words by which a message may name an argument; a struct may also be named by its fields."""
    return argument, *getattr(value, "_fields", ())


def refusal(call, argument: str, mutated: Any) -> str:
    """Returns "clear" if a call with a mutated argument is refused by name, otherwise the fault."""
    before = len(compiled)
    try:
        call.function(**call.arguments | {argument: mutated})
    except ValueError as error:
        names = names_of(argument, call.arguments[argument])
        if not any(re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", str(error)) for name in names):
            return f"a ValueError that does not name it: {str(error)[:80]}"
        return "clear" if len(compiled) == before else "refused after something was compiled"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:80]}"
    return "silence"


def test_note_counts_compiled_programs():
    before = len(compiled)
    jax.jit(lambda x: x * 3.25 + 7)(1.0)
    assert len(compiled) > before


def test_every_public_function_of_the_families_has_a_call():
    for family in FAMILIES:
        module = importlib.import_module(f"jaxbandits.{family}")
        functions = {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
        without = {name for name in functions if inspect.signature(getattr(module, name)).parameters}
        functions_called = {call.function.__name__ for name, call in CALLS.items() if name.startswith(f"{family}.")}
        assert sorted(without - functions_called) == []


@pytest.mark.parametrize("name", CALLS)
def test_call_is_valid_and_has_every_argument(name):
    """Calls are traced, so that nothing is compiled. If a function needs values, it is called."""
    call = CALLS[name]
    parameters = inspect.signature(call.function).parameters.values()
    named = {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    assert named <= set(call.arguments)

    def valid():
        call.function(**call.arguments)

    try:
        jax.eval_shape(valid)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError, TypeError):
        valid()


@pytest.mark.parametrize("name", CALLS)
def test_bad_arguments_are_refused_by_name(name):
    call = CALLS[name]
    bad = {}
    for argument, value in call.arguments.items():
        tried = [*mutations(value), *edges(name, argument, value)]
        tried += fields(value) if isinstance(value, OPTIONS) else []
        tried += entries(name, argument, value) if is_array(value) else []
        for mutation, mutated in tried:
            if mutation not in call.fine.get(argument, ()):
                end = refusal(call, argument, mutated)
                if end != "clear":
                    bad[f"{argument}, {mutation}"] = end
    assert bad == {}
