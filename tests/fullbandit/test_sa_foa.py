"""SA-FOA: surrogates by hand and against the transcription, lotteries literally, cumulated, and in law."""

import functools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY, rewards, trace
from scipy import stats

from experiments.bench.reference import fullbandit as reference
from jaxbandits import Status, run
from jaxbandits.fullbandit import (
    Estimate,
    Growth,
    Instance,
    Pace,
    Sampling,
    cyclic_support,
    environment,
    exhaustive_rule,
    g_allocation,
    make_design,
    random_support,
    sa_foa,
    surrogates,
)
from jaxbandits.fullbandit._algorithms.sa_foa import COARSE, UNLIKELY, State, lottery_hazard, sampled_rows
from jaxbandits.fullbandit._shared.surrogates import peel_all
from jaxbandits.fullbandit._shared.tracking import estimator
from jaxbandits.numerics.densest_subgraph import quadratic_maximization

N, K = 6, 3
THETA = jnp.array([0.9, 0.2, 0.7, -0.5, 0.4, 0.1])
ALLOCATION = g_allocation(random_support(3, N, K, size=14))
UNIFORM = make_design(random_support(4, N, K, size=9), K)
CYCLIC = make_design(cyclic_support(5, 3), 3)
FIVE = jnp.array([1.0, 0.8, 0.6, 0.2, 0.0])
BASE = {"delta": 0.05, "epsilon": 0.3, "noise_scale": 0.4 / 3}
both_reductions = pytest.mark.parametrize("reduction", ["paper", "exact"])


def make(design=UNIFORM, **options):
    pace = {name: options.pop(name) for name in Pace._fields if name in options}
    return sa_foa(design, pace=Pace(**{"growth": 0.005} | pace), **(BASE | options))


@functools.cache
def decider(**options):
    """Compiles `decide` of the uniform design, as a function of the state."""
    return jax.jit(partial(make(**options).decide, KEY))


@jax.jit
def end(design, tape, delta=0.05, epsilon=0.3, scale=0.4 / 3, threshold=0.5, growth=0.05, variance=K):
    """Returns stop, pulls, answer and hazard at the end; all numbers are traced."""
    numbers = {"delta": delta, "epsilon": epsilon, "noise_scale": scale, "threshold": threshold}
    algorithm = sa_foa(design, **numbers, pace=Pace(growth=Growth(growth, pull_variance=variance)))
    course = trace(algorithm, tape, 160)
    pulls, hazard = course.watched.pulls, course.watched.hazard
    ends = {"stop": course.stops, "pulls": pulls, "answer": course.answers, "hazard": hazard}
    return jax.tree.map(lambda x: x[-1], ends)


def arms(mask):
    return tuple(np.flatnonzero(mask).tolist())


def random_spd(rng, n):
    factor = rng.standard_normal((n, 2 * n))
    return np.linalg.inv(factor @ factor.T)


# Surrogates


@both_reductions
@pytest.mark.parametrize(("n", "k"), [(3, 2), (7, 2), (9, 4), (12, 11)])
def test_peeling_all_surrogates_is_peeling_each(n, k, reduction):
    rng = np.random.default_rng(n)
    inverse = jnp.asarray(random_spd(rng, n))
    # Sizes range from far below the shared matrix, which then decides, to far above.
    diagonals = jnp.asarray(rng.standard_normal((40, n)) * np.geomspace(1e-3, 10, 40)[:, None])
    together = jax.jit(peel_all, static_argnums=(2, 3))(inverse, diagonals, k, reduction)
    one = partial(quadratic_maximization, k=k, reduction=reduction)
    each = jax.jit(jax.vmap(lambda diagonal: one(inverse + jnp.diag(diagonal)).mask))(diagonals)
    np.testing.assert_array_equal(together, each)
    assert np.all(together.sum(1) == k)
    assert len(np.unique(together, axis=0)) > 1


def test_peeling_removes_the_lowest_index_first_among_ties():
    masks = peel_all(np.eye(5), jnp.zeros((2, 5)), 2, "paper")
    assert [arms(row) for row in masks] == [(3, 4), (3, 4)]


@pytest.mark.parametrize(
    ("t", "reduction", "set_found", "lead"),
    [
        (46950, "paper", (0, 1, 2), 0.0),
        (46950, "exact", (0, 1, 3), 0.498378),
        (30000, "paper", (0, 1, 3), 0.704576),
        (30000, "exact", (0, 1, 3), 0.704576),
    ],
)
def test_surrogates_of_five_arms_by_hand(t, reduction, set_found, lead):
    """Every |chi|^2 of the cyclic design is known, and exchanging neighbours 2 and 3 has |y|^2 = 20 in Lambda^-1."""
    estimate = Estimate(FIVE, CYCLIC.inverse / t, jnp.asarray(float(t)))
    np.testing.assert_allclose(CYCLIC.inverse[0], [6.111111, -3.888889, 1.111111, 1.111111, -3.888889], atol=1e-6)
    rivals = surrogates(CYCLIC, estimate, t, delta=0.05, reduction=reduction)
    assert arms(rivals.answer) == (0, 1, 2)
    assert rivals.leads[0] == -jnp.inf  # lead of the answer itself
    assert all(arms(row) == set_found for row in rivals.sets[1:])
    np.testing.assert_allclose(rivals.leads[1:], lead, atol=1e-6)
    if t == 46950:
        np.testing.assert_allclose(rivals.radius, 43.527338, atol=1e-6)


def test_the_rule_stops_where_the_certified_one_does_not():
    """The five arms again, as a state: no rival is found, so the run stops, although one may lead by 0.498."""
    t, options = 46950, {"delta": 0.05}
    counts = jnp.full(5, t // 5)
    state = State(jnp.asarray(t), counts, counts * 1.0 * (CYCLIC.support @ FIVE), jnp.zeros(()), jnp.asarray(40.0))
    paper, exact = (
        sa_foa(CYCLIC, epsilon=0.2, reduction=reduction, **options).decide(KEY, state)
        for reduction in ("paper", "exact")
    )
    assert paper.stop
    assert not exact.stop
    assert arms(paper.answer) == (0, 1, 2)
    certified = [
        exhaustive_rule(CYCLIC, Estimate(FIVE, CYCLIC.inverse / t, jnp.asarray(float(t))), t, epsilon=0.1, **options)
        for t in (t, 166127, 166128)
    ]
    np.testing.assert_allclose(certified[0].margin, 0.1 - 0.498378, atol=1e-6)
    assert [bool(verdict.stop) for verdict in certified] == [False, False, True]


@both_reductions
def test_surrogates_equal_the_transcription(reduction):
    rng = np.random.default_rng(5)
    moved = 0
    for _ in range(12):
        design = make_design(random_support(int(rng.integers(1000)), 7, 3, size=11), 3)
        support = np.asarray(design.support)
        inverse, theta, t = random_spd(rng, 7), rng.standard_normal(7), int(rng.integers(20, 5000))
        options = {"delta": 0.1, "noise_scale": 0.1}
        estimate = Estimate(jnp.asarray(theta), jnp.asarray(inverse), jnp.ones(()))
        rivals = surrogates(design, estimate, t, reduction=reduction, **options)
        answer, radius = reference.best(theta, 3), reference.ellipsoid(t, 7, 3, **options)
        assert arms(rivals.answer) == answer
        np.testing.assert_allclose(rivals.radius, radius, rtol=1e-12)
        largest = reference.largest_lead(inverse, theta, radius, 3)
        for i, row in enumerate(support.astype(float)):
            if arms(row) == answer:
                assert rivals.leads[i] == -np.inf
                continue
            away = row - reference.chi(answer, 7)
            g = radius / (2 * reference.norm(away, inverse))
            B = g * inverse - np.diag(2 * g * inverse @ reference.chi(answer, 7)) + np.diag(theta)
            S = reference.peel(B, 3, reduction)
            change = reference.chi(S, 7) - reference.chi(answer, 7)
            assert arms(rivals.sets[i]) == S
            np.testing.assert_allclose(
                rivals.leads[i], change @ theta + radius * reference.norm(change, inverse), atol=1e-12
            )
            # The lead is a lower bound of equation (5); a proof would need an upper one.
            assert rivals.leads[i] <= max(largest, 0) + 1e-12
            moved += answer != S
    assert moved > 20


# The lottery


def test_hazard_of_a_test():
    def hazard(blocking, s, size):
        return lottery_hazard(jnp.asarray(blocking), s=s, size=size, dtype=jnp.float64)

    assert hazard(0, 9, 6) == jnp.inf
    assert hazard(9, 9, 6) == 0
    np.testing.assert_allclose(hazard(1, 2, 1), np.log(2), rtol=1e-12)
    np.testing.assert_allclose(hazard(3, 4, 2), -np.log(15 / 16), rtol=1e-12)
    np.testing.assert_allclose(hazard(99, 100, 10), 1e-20, rtol=1e-12)  # hazard far below the rounding of 1
    # Sampling with replacement, by counting: no blocking row among 2 draws from 5 rows, 2 of which block.
    rows = np.array(np.meshgrid(range(5), range(5))).reshape(2, -1)
    np.testing.assert_allclose(jnp.exp(-hazard(2, 5, 2)), np.mean((rows < 2).any(0)), rtol=1e-12)


def test_the_sample_is_a_function_of_the_state_alone():
    rows = sampled_rows(jnp.asarray(0.7), jnp.asarray(30), s=9, size=4000)
    assert jnp.array_equal(rows, sampled_rows(jnp.asarray(0.7), jnp.asarray(30), s=9, size=4000))
    assert not jnp.array_equal(rows, sampled_rows(jnp.asarray(0.7), jnp.asarray(31), s=9, size=4000))
    assert not jnp.array_equal(rows, sampled_rows(jnp.asarray(0.70001), jnp.asarray(30), s=9, size=4000))
    assert stats.chisquare(np.bincount(rows, minlength=9)).pvalue > 1e-3
    single = sampled_rows(jnp.asarray(0.7, jnp.float32), jnp.asarray(30), s=9, size=50)
    assert jnp.all((single >= 0) & (single < 9))


def test_run_stops_where_the_cumulated_hazard_reaches_the_clock():
    """Without noise the hazard of every test is known beforehand. Given the clock, the stop is known too."""
    answers = environment(Instance(THETA, K, 0.0), UNIFORM)
    support, s, horizon = np.asarray(UNIFORM.support), 9, 900
    find = jax.jit(lambda estimate, t: surrogates(UNIFORM, estimate, t, delta=0.05, noise_scale=0.2 / 3))

    def hazard(counts, t):
        inverse = np.linalg.inv(support.T @ (counts[:, None] * support))
        blocking = np.sum(np.asarray(find(Estimate(THETA, inverse, 1.0), t).leads) > BASE["epsilon"] / 2)
        return np.inf if blocking == 0 else -np.log1p(-((1 - blocking / s) ** N))

    times = np.arange(s, horizon)
    hazards = np.array([hazard(t // s + (np.arange(s) < t % s), t) for t in times])
    cumulated = np.cumsum(hazards)
    for growth in (None, 0.05):
        algorithm = make(growth=growth, noise_scale=0.2 / 3)
        runs = jax.jit(jax.vmap(lambda key, algorithm=algorithm: run(key, algorithm, answers, max_rounds=5000)))
        ends = runs(jax.random.split(KEY, 20))
        state = ends.state
        expected = times[np.searchsorted(cumulated, np.asarray(state.clock))]
        assert np.all(ends.status == Status.STOPPED)
        if growth is None:
            np.testing.assert_array_equal(state.pulls, expected)
            assert len(set(expected.tolist())) > 5  # number of different stops, which the lottery decides
        else:
            np.testing.assert_allclose(state.pulls, expected, rtol=0.06)
        assert np.all(state.hazard < state.clock)


@pytest.mark.slow
def test_leaps_stop_as_literal_lotteries_do():
    """Means within 3.3 standard errors and equal laws by Kolmogorov-Smirnov at 1e-3: false alarm 2e-3."""
    answers = environment(Instance(THETA, K, 0.1), UNIFORM)

    def pulls(seed, **options):
        algorithm = make(noise_scale=0.2 / 3, **options)
        keys = jax.random.split(jax.random.key(seed), 300)
        ends = jax.jit(jax.vmap(lambda key: run(key, algorithm, answers, max_rounds=5000)))(keys)
        assert np.all(ends.status == Status.STOPPED)
        return np.asarray(ends.pulls), np.asarray(ends.rounds)

    # Rewards vary far less than the default `pull_variance`, so leaps may be longer than by default.
    (literal, _), (leaping, rounds) = (
        pulls(0, sampling=Sampling(lottery="draw"), growth=None),
        pulls(1, growth=Growth(0.005, pull_variance=K * 0.1**2)),
    )
    assert rounds.mean() < leaping.mean() / 2
    error = np.sqrt((literal.var() + leaping.var()) / 300)
    assert abs(literal.mean() - leaping.mean()) < 3.3 * error
    assert stats.ks_2samp(literal, leaping).pvalue > 1e-3
    assert error < 0.04 * literal.mean()


# Leaps, and the statistics of a run


def state_at(t, clock=1.0, hazard=0.0):
    """Builds a state of the uniform design after t pulls without noise."""
    counts = t // 9 + (jnp.arange(9) < t % 9).astype(int)
    sums = counts.astype(float) * jnp.matmul(UNIFORM.support, THETA)
    return State(jnp.asarray(t), counts, sums, jnp.asarray(hazard), jnp.asarray(clock))


def test_a_coarse_leap_is_no_longer_than_the_noise_of_the_estimate_allows():
    """The leads have room for the shrinking of the widths, and for 8 deviations of new noise and of old errors."""
    t = 100

    @jax.jit
    def leap(noise_scale, variance):
        algorithm = make(growth=Growth(1e-4, pull_variance=variance), noise_scale=noise_scale)
        pulls = algorithm.decide(KEY, state_at(t)).action.counts.sum()
        estimate = estimator(UNIFORM)(*state_at(t)[1:3])
        rivals = surrogates(UNIFORM, estimate, t, delta=BASE["delta"], noise_scale=noise_scale)
        return pulls / t, jnp.min((rivals.leads - 0.5 * BASE["epsilon"]) / rivals.widths), rivals.radius

    for noise_scale in (1.0, 0.5, 0.2):
        for variance in (0.01, 3.0, 12.0):
            x, room, radius = map(float, leap(noise_scale, variance))
            noise = 8 * np.sqrt(variance) / radius
            assert room > 0
            assert x <= 1 / t or (noise + 0.5) * x + noise * np.sqrt(x) <= room * (1 + 1e-9)
    assert leap(1.0, 300.0)[0] < leap(1.0, 0.01)[0] / 2


def test_leaps_reach_the_grid_or_the_stop():
    decide = decider(growth=0.02, noise_scale=1.0)
    first = decide(make().init(KEY))
    assert first.action.counts.tolist() == [1] * 9
    assert first.action.hazard == 0
    assert not first.stop

    # While all surrogates block the grid is coarser, the more so the earlier.
    leaps = []
    for t in (100, 1000, 10_000):
        action = decide(state_at(t)).action
        assert action.hazard == 0
        leaps.append(int(action.counts.sum()) / t)
    assert 0.25 > leaps[0] > leaps[1] > leaps[2] >= COARSE

    # If a stop is likely the leap is 2 %, each of its pulls with the hazard of the test.
    late = ((t, decide(state_at(t, clock=1e9))) for t in range(20_000, 200_000, 500))
    t, action = next(
        (t, decision.action)
        for t, decision in late
        if not decision.stop and float(decision.action.hazard) / int(decision.action.counts.sum()) * t >= UNLIKELY
    )
    assert int(action.counts.sum()) == t // 50
    hazard = float(action.hazard) / (t // 50)
    # The clock is at 7.5 hazards: seven tests fail and the eighth stops.
    near = decide(state_at(t, clock=7.5 * hazard))
    assert not near.stop
    assert int(near.action.counts.sum()) == 7
    np.testing.assert_allclose(near.action.hazard, 7 * hazard, rtol=1e-12)
    assert decide(state_at(t, clock=0.9 * hazard)).stop
    assert decide(state_at(t, clock=7.5 * hazard, hazard=6.6 * hazard)).stop


def test_the_limit_is_exact_after_whole_cycles():
    counts, limit = decider(growth=0.02, noise_scale=1.0), decider(growth=0.02, noise_scale=1.0, design_matrix="limit")
    lottery = False
    for t in range(9000, 180_000, 9000):
        a, b = counts(state_at(t, clock=1e9)), limit(state_at(t, clock=1e9))
        pulls, rounded = int(a.action.counts.sum()), int(b.action.counts.sum())
        assert a.stop == b.stop
        if not a.stop:
            assert rounded % 9 == 0
            assert 0 <= rounded - pulls < 9
            np.testing.assert_allclose(b.action.hazard / rounded, a.action.hazard / pulls, rtol=1e-9)
            lottery |= bool(a.action.hazard > 0)
    assert lottery


@pytest.mark.parametrize("sampling", [Sampling(), None])
def test_a_nan_never_stops(sampling):
    decide, state = decider(sampling=sampling, growth=0.02, noise_scale=1.0), state_at(10**8)
    assert decide(state).stop
    assert not decide(state._replace(sums=state.sums * jnp.nan)).stop


# Laws


def test_the_threshold_moves_the_bar():
    """Half of epsilon with threshold 1 stops as epsilon with threshold 0.5 does, and not as other numbers do."""
    tape = rewards(THETA, UNIFORM.support, 2000, 3, scale=0.3)
    options = ({"epsilon": 0.4}, {"epsilon": 0.2, "threshold": 1.0}, {"epsilon": 0.4, "threshold": 1.0})
    ends = [end(UNIFORM, tape, **numbers) for numbers in options]
    assert all(each["stop"] for each in ends)
    assert ends[0]["pulls"] == ends[1]["pulls"] > ends[2]["pulls"]


def test_a_drawn_lottery_keeps_float32_and_stops():
    design = make_design(UNIFORM.support, K, dtype=jnp.float32)
    algorithm = make(design, noise_scale=0.2 / 3, sampling=Sampling(lottery="draw"), growth=None)
    answers = environment(Instance(THETA.astype(jnp.float32), K, 0.3), design)
    end = jax.jit(lambda: run(KEY, algorithm, answers, max_rounds=5000))()
    assert end.status == Status.STOPPED
    assert {x.dtype for x in jax.tree.leaves(end.state) if x.dtype.kind == "f"} == {jnp.dtype("float32")}
