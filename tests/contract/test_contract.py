"""The promises of `jaxbandits.base`, checked for every algorithm in `cases.py`.

All plain runs of a case are lanes of one program: seeds, budgets, a lane that observes NaN, and for every
hyperparameter that may be a tracer one lane in which it has another value. A choice, which changes the program, is
compiled by itself.

A case costs seconds of compiling, and there are some eighty: a `FEW` are looked at always, one to three a family, and
all with the `wide` tests, which whoever adds or changes an algorithm runs (`-k NAME -m "not slow"`). There, too, is
float32 for the few. `testing.check` takes longest, and mostly shows again what the lanes of the one program have shown:
the few have it with the `wide` tests, all and their variants with the `thorough` ones, as are the choices. That every
algorithm draws the numbers that it should, and stops where it should, is always held against its transcription.
"""

import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from drivers.programs import assert_same, differ, leaves, primitives_of_a_round, program_of_a_round

import jaxbandits
from jaxbandits import testing
from jaxbandits.base import Outcome, Status
from jaxbandits.engine.run.loop import run

SEEDS = 4
KEY = jax.random.key(7)


# One to three a family; together they leap, refresh, plan, wait, and keep factors up to date.
FEW = (
    *("lingape-leap", "saqm", "ns-tands", "ds-ucb", "ds-random", "uniform", "pfws"),
    *("bpe", "dis-kernel-ucb", "n-kernel-ucb", "tas-plan", "successive-rejects-leap"),
)
# One of these per family is also swept.
SWEPT = ("lingape-leap", "saqm", "ns-tands", "uniform", "bpe", "tas-plan")


def wide(name):
    return [pytest.mark.wide]


def thorough(name):
    return [pytest.mark.wide, pytest.mark.thorough]


def wide_but_few(name):
    return [] if name in FEW else wide(name)


def thorough_but_few(name):
    return (wide if name in FEW else thorough)(name)


def marks_of(case, marks):
    """Returns the marks of a case, given the marks of a case that is no variant."""
    variant = thorough if marks in (thorough, thorough_but_few) else wide
    return variant if case.is_variant else marks


def each(*names, of=lambda case: [()], marks=wide_but_few, among=tuple(CASES)):
    """Parametrizes every case; parameters of one case run in one process, which compiles its programs once."""
    return pytest.mark.parametrize(
        ("name", *names),
        [
            pytest.param(
                name,
                *more,
                id="-".join(map(str, (name, *more[:1]))),
                marks=[pytest.mark.xdist_group(f"contract, {name}"), *marks_of(case, marks)(name)],
            )
            for name, case in CASES.items()
            if name in among
            for more in of(case)
        ],
    )


# Variants keep the promises that `testing.check` tests in 64 bit; what else is tested here, the algorithm itself shows.
MAIN = tuple(name for name, case in CASES.items() if not case.is_variant)
every_case = each(among=MAIN)
every_dtype = each("dtype", of=lambda case: [(dtype,) for dtype in case.dtypes], marks=lambda name: [])
every_number = each("number", of=lambda case: [(number,) for number in case.numbers], among=MAIN)
every_choice = each("choice", "value", of=lambda case: list(case.choices.items()), marks=thorough)
every_case_thoroughly = each(marks=thorough_but_few)
every_few = each(marks=lambda name: [], among=FEW)
every_swept = each(marks=lambda name: [] if name in SWEPT else wide(name), among=FEW)
# Programs optimised by XLA: algorithms that leap, plan, or update a factor or an inverse.
LONGEST = ("ds-ts", "ns-tands", "dis-kernel-ucb", "duets", "xy-adaptive")  # 30 to 90 seconds each
every_optimised = each(
    of=lambda case: [()],
    marks=lambda name: [pytest.mark.slow, *([pytest.mark.thorough] if name in LONGEST else [])],
    among=(
        *("lingape-leap", "xy-adaptive", "sa-foa", "ds-ts", "ns-tands", "coci-block", "duets", "dis-kernel-ucb", "bpe"),
        *("tas-plan", "successive-rejects-leap"),
    ),
)
# Integers cannot be NaN.
every_case_of_floats = each(of=lambda case: [] if case.integers else [()], among=MAIN)


# Algorithms that stop late are checked for some seconds.
unstopped_is_fine = pytest.mark.filterwarnings("ignore:the run did not stop")


class Lane(NamedTuple):
    """Inputs that may differ between the runs of one program."""

    key: Any
    max_rounds: Any
    factor: Any  # factor on every observation
    numbers: dict[str, Any]


class End(NamedTuple):
    """End of a run."""

    outcome: Outcome
    idled: Any  # the state after one more idle action


@functools.cache
def program(name, dtype):
    """Lowers and compiles a batch of plain runs; counts how often they were traced."""
    case, traces = CASES[name], []

    def one(lane):
        traces.append(None)
        algorithm, environment = case.make(dtype, **lane.numbers)

        def respond(memory, action, noise):
            observation, memory = environment.respond(memory, action, noise)
            scaled = jax.tree.map(lambda x: x * lane.factor if x.dtype == lane.factor.dtype else x, observation)
            return scaled, memory

        outcome = run(
            lane.key,
            algorithm,
            environment._replace(respond=respond),
            max_rounds=lane.max_rounds,
            axis_name="lanes",
        )
        noise = environment.noise(lane.key)
        idled = algorithm.observe(outcome.state, algorithm.idle, environment.respond((), algorithm.idle, noise)[0])
        return End(outcome, idled)

    lowered = jax.jit(jax.vmap(one, axis_name="lanes")).lower(batch(lanes(name, dtype)))
    return lowered, lowered.compile(), traces


@functools.cache
def numbers(name, dtype):
    """Returns the first value of each, as arrays of the problem's type."""
    values = {number: np.asarray(first) for number, (first, _) in CASES[name].numbers.items()}
    return {number: value.astype(dtype if value.dtype.kind == "f" else "int32") for number, value in values.items()}


@functools.cache
def lanes(name, dtype):
    """Returns every lane by its name."""
    case, base = CASES[name], numbers(name, dtype)
    keys = [jaxbandits.task_key(KEY, 0, seed) for seed in range(SEEDS)]
    one = np.ones((), dtype)
    lanes_by_name = {seed: Lane(key, np.int32(case.max_rounds), one, base) for seed, key in enumerate(keys)}
    lanes_by_name["again"] = lanes_by_name[0]
    lanes_by_name["one round"] = lanes_by_name[0]._replace(max_rounds=np.int32(1))
    lanes_by_name["poisoned"] = lanes_by_name[0]._replace(factor=np.full((), np.nan, dtype))
    for number, (_, other) in case.numbers.items():
        value = np.asarray(other).astype(base[number].dtype)
        lanes_by_name[number] = lanes_by_name[0]._replace(numbers=base | {number: value})
    return lanes_by_name


def batch(chosen):
    keys = jnp.stack([lane.key for lane in chosen.values()])
    others = [lane._replace(key=None) for lane in chosen.values()]
    return jax.tree.map(lambda *x: np.stack(x), *others)._replace(key=keys)


def ends(name, dtype="float64", *, cut=False):
    """Returns the ends of the lanes; if cut, with one round less than they take."""
    return _ends(name, dtype, cut)


@functools.cache
def _ends(name, dtype, cut):
    chosen = lanes(name, dtype)
    if cut:
        full = ends(name, dtype)
        less = {lane: np.int32(max(1, full[lane].outcome.rounds - 1)) for lane in chosen}
        chosen = {lane: value._replace(max_rounds=less[lane]) for lane, value in chosen.items()}
    _, compiled, _ = program(name, dtype)
    reached = jax.device_get(compiled(batch(chosen)))
    return {lane: jax.tree.map(lambda x, i=i: x[i], reached) for i, lane in enumerate(chosen)}


def test_the_few_exist():
    assert set(SWEPT) < set(FEW) < set(CASES)


@every_dtype
def test_the_floats_of_a_state_are_those_of_the_problem(name, dtype):
    algorithm, environment = CASES[name].make(dtype)

    def states(key):
        state = algorithm.init(key)
        action = algorithm.decide(key, state).action
        observation, _ = environment.respond(environment.init(key), action, environment.noise(key))
        after = algorithm.observe(state, action, observation)
        return state, after, after if algorithm.plan is None else algorithm.plan(key, after)

    shapes = jax.eval_shape(states, KEY)
    kinds = [jax.tree.map(lambda x: (x.shape, x.dtype), state) for state in shapes]
    assert kinds[0] == kinds[1] == kinds[2]
    floats = {leaf.dtype for leaf in jax.tree.leaves(shapes[0]) if jnp.issubdtype(leaf.dtype, jnp.inexact)}
    assert floats <= {jnp.dtype(dtype)}


@every_case_thoroughly
@unstopped_is_fine
def test_promises(name):
    testing.check(*CASES[name].make("float64"), key=KEY)


@each(marks=wide, among=[name for name in FEW if "float32" in CASES[name].dtypes])
@unstopped_is_fine
def test_promises_in_32_bit(name):
    testing.check(*CASES[name].make("float32"), key=KEY)


@every_optimised
@unstopped_is_fine
def test_promises_of_programs_that_are_optimised(name):
    """Bit by bit: a run among others is that run alone, however its programs were fused."""
    testing.check(*CASES[name].make("float64"), key=KEY)


@every_case
def test_an_idle_action_changes_no_bit(name):
    assert ends(name)[0].outcome.status == Status.STOPPED
    for end in (ends(name)[0], ends(name, cut=True)[0], ends(name)["one round"]):
        assert_same(end.idled, end.outcome.state)


@every_few
def test_a_lane_does_not_depend_on_the_others(name):
    _, compiled, _ = program(name, "float64")
    chosen = lanes(name, "float64")
    alike = compiled(batch(dict.fromkeys(chosen, chosen[1]))).outcome
    for x, y in zip(leaves(alike), leaves(ends(name)[1].outcome), strict=True):
        np.testing.assert_allclose(x, np.broadcast_to(y, x.shape), rtol=1e-9, atol=1e-9)


@every_case
def test_a_prefix_is_the_same_run(name):
    for seed in range(SEEDS):
        end, short = ends(name)[seed].outcome, ends(name, cut=True)[seed].outcome
        assert short.status == (Status.MAX_ROUNDS if end.rounds > 1 else Status.STOPPED)
        assert short.rounds == max(1, end.rounds - 1)
        assert short.pulls <= end.pulls


@every_swept
def test_sweep_equals_plain_runs(name):
    """Their hyperparameters are Python numbers here, tracers there. Without a cache the chunk does not matter."""
    case = CASES[name]
    has_cache = case.make("float64")[0].refresh is not None
    results = jaxbandits.sweep(
        lambda task, key: case.make("float64", **{number: first for number, (first, _) in case.numbers.items()}),
        seeds=SEEDS,
        key=KEY,
        max_rounds=case.max_rounds,
        lanes=2,
        chunk=256 if has_cache else 100,
        progress=False,
    )
    for seed in range(SEEDS):
        single = ends(name)[seed].outcome
        fields = single.answer._asdict() if hasattr(single.answer, "_asdict") else {}
        expected = {f"answer.{field}": value for field, value in fields.items()} or {"answer": single.answer}
        expected |= {column: getattr(single, column) for column in ("status", "pulls", "rounds")}
        for column, value in expected.items():
            np.testing.assert_array_equal(results.columns[column][seed], value, err_msg=f"{seed}, {column}")


@every_case
def test_seeds_decide(name):
    assert_same(ends(name)[0], ends(name)["again"])
    assert differ(ends(name)[0].outcome.state, ends(name)[1].outcome.state)


@every_number
def test_every_hyperparameter_changes_something(name, number):
    assert differ(ends(name)[0].outcome, ends(name)[number].outcome)


def traced(name, **choices):
    """Returns the text and the constants of the program of a round."""
    settings = {number: first for number, (first, _) in CASES[name].numbers.items()}
    program = program_of_a_round(*CASES[name].make("float64", **settings | choices))
    # A solver of linear programs is called by a number that grows with every trace.
    return re.sub(r"select_n False:bool\[\] \d+", "select_n False:bool[] n", str(program)), program.consts


first_program = functools.cache(traced)


@every_choice
def test_every_choice_changes_the_program(name, choice, value):
    first, other = first_program(name), traced(name, **{choice: value})
    assert first[0] != other[0] or differ(first[1], other[1])


@pytest.mark.thorough
@pytest.mark.wide
def test_a_program_is_traced_twice_to_the_same_text():
    """So that a choice which is ignored fails above."""
    for name in [name for name, case in CASES.items() if case.choices]:
        first, again = first_program(name), traced(name)
        assert first[0] == again[0], name
        assert not differ(first[1], again[1]), name


@every_case
def test_traced_hyperparameters_compile_once(name):
    """All of them are tracers in the one program, which is traced once for all their values."""
    _, _, traces = program(name, "float64")
    assert len(traces) == 1


@every_case_of_floats
def test_nan_observations_end_as_nonfinite(name):
    assert ends(name)["poisoned"].outcome.status == Status.NONFINITE


@each(
    of=lambda case: [()] if "float32" in case.dtypes and not case.integers else [], marks=thorough_but_few, among=MAIN
)
def test_in_32_bit_runs_stop_and_nan_observations_end_as_nonfinite(name):
    reached = ends(name, "float32")
    assert reached[0].outcome.status == Status.STOPPED
    assert reached["poisoned"].outcome.status == Status.NONFINITE


@every_case
def test_budget_of_rounds_is_censoring(name):
    end, is_longer = ends(name)["one round"].outcome, ends(name)[0].outcome.rounds > 1
    assert end.status == (Status.MAX_ROUNDS if is_longer else Status.STOPPED)
    assert end.rounds == 1


# Rules whose plans have a loop of unknown length; of the last two, every round has one.
UNBOUNDED = ("ns-tands", "track-and-stop", "duets", "dis-kernel-ucb", "approx-dis-kernel-ucb")
# Rules that draw Beta variables propose again while a lane of the batch lacks one: at most three times, on a CPU alone.
REPEATED = ("ttts-ones", "ns-ts-bernoulli")
LIBRARY_CALLS = {"cholesky", "triangular_solve", "lu", "eigh", "svd"}


@each(marks=lambda name: [])
def test_no_round_promotes_a_rank_or_has_a_loop_of_unknown_length_or_a_library_call(name):
    """A batch would wait for its slowest lane, a GPU for the host. Tracing checks the ranks."""
    primitives = primitives_of_a_round(*CASES[name].make("float64"))
    assert primitives
    assert ("while" in primitives) == (name in UNBOUNDED + REPEATED)
    assert not primitives & LIBRARY_CALLS


@every_choice
def test_no_choice_adds_a_loop_of_unknown_length_or_a_library_call(name, choice, value):
    primitives = primitives_of_a_round(*CASES[name].make("float64", **{choice: value}))
    assert "while" not in primitives or name in UNBOUNDED
    assert not primitives & LIBRARY_CALLS


@every_case
def test_no_lapack_call(name):
    """jaxlib's batched LAPACK calls block the threads that a sweep computes with (see numerics.linalg)."""
    lowered, _, _ = program(name, "float64")
    assert "lapack" not in lowered.as_text()
