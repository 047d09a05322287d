"""LinGapE against worked numbers, leaps against single rounds, and precision. Laws of runs are in tests/laws."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.tape import answered
from jax import lax

import jaxbandits
from jaxbandits import linear
from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.linear import lingape
from jaxbandits.numerics import thresholds

KEY = jax.random.key(0)


def random_arms(seed, K=6, d=3):
    arms = np.random.default_rng(seed).normal(size=(K, d))
    return arms / np.linalg.norm(arms, axis=1, keepdims=True)


# Worked by hand


def test_two_canonical_arms_by_hand():
    algorithm = lingape(np.eye(2), delta=0.1, noise_scale=1.0, norm_bound=1.0, union_bound=1.0)
    state = algorithm.init(KEY)
    for arm, reward in ((0, 1.0), (1, 0.0)):
        decision = algorithm.decide(KEY, state)
        assert decision.action == (arm, 1)
        assert not decision.stop
        state = algorithm.observe(state, decision.action, jnp.asarray(reward))
    np.testing.assert_allclose(state.theta, [0.5, 0.0])
    np.testing.assert_allclose(state.logdet, 1.38629, atol=1e-5)
    decision = algorithm.decide(KEY, state)
    # B = 2.94775 lies between the two values of epsilon, so the stop reveals its value; scores tie, so arm 0 is due.
    assert decision.action.arm == 0
    for epsilon, stops in ((2.94774, False), (2.94776, True)):
        other = lingape(np.eye(2), delta=0.1, norm_bound=1.0, union_bound=1.0, epsilon=epsilon)
        assert bool(other.decide(KEY, state).stop) is stops


def test_confidence_radius_by_hand():
    # log det A = 3, d = 3, ridge = 4: logdet(A / ridge) = 3 - 3 log 4; C = 7.03760 with delta .05, R 1, S 2, u 9.
    arms = np.eye(3)
    algorithm = lingape(arms, delta=0.05, ridge=4.0, norm_bound=2.0, union_bound=9.0)
    # A is diagonal with entries exp(1). Every pair has width sqrt(2 / e) and every gap is 0, so B = C sqrt(2 / e).
    state = algorithm.init(KEY)._replace(
        pulls=jnp.asarray(3),
        images=arms / np.e,
        leverage=jnp.full(3, 1 / np.e),
        logdet=jnp.asarray(3 - 3 * np.log(4)),
    )
    bound = 7.03760 * np.sqrt(2 / np.e)
    for epsilon, stops in ((bound - 1e-5, False), (bound + 1e-5, True)):
        other = lingape(arms, delta=0.05, ridge=4.0, norm_bound=2.0, union_bound=9.0, epsilon=epsilon)
        assert bool(other.decide(KEY, state).stop) is stops


def test_cache_after_5000_rounds_equals_a_rebuild():
    instance = linear.soare(5)
    algorithm = lingape(instance.arms, delta=0.05)
    end = run(KEY, algorithm, linear.environment(instance), max_rounds=5000, chunk=5000)
    rebuilt = algorithm.refresh(end.state)
    for name in ("images", "leverage", "theta", "logdet"):
        np.testing.assert_allclose(getattr(end.state, name), getattr(rebuilt, name), rtol=1e-9, atol=1e-10)


# Leaps


def course_of(arms, tape, ratios, leap):
    """Returns pulls, counts and stops of all rounds up to the stop; the n-th pull of an arm pays `tape[arm, n]`."""
    sums = jnp.pad(jnp.cumsum(tape, axis=1), ((0, 0), (1, 0)))

    def answer(state, action):
        n = state.counts[action.arm]
        return sums[action.arm, n + action.times] - sums[action.arm, n]

    @jax.jit
    def record():
        pair = answered(lingape(arms, delta=0.1, ratios=ratios, leap=leap), answer)
        course = jaxbandits.trace(KEY, *pair, rounds=5100, watch=lambda state: (state.pulls, state.counts))
        return *course.watched, course.stops

    *watched, stops = jax.device_get(record())
    rounds = int(stops.argmax()) + 1 if stops.any() else len(stops)
    return *(each[:rounds] for each in watched), stops[:rounds]


@pytest.mark.parametrize("rule", ["greedy", "ratio"])
def test_a_leap_pulls_what_single_rounds_pull(rule):
    """Coupled by one reward stream per arm, leaps and single rounds agree at every leap's end."""
    instance = linear.soare(2, omega=0.1)
    ratios = linear.ratio_tables(instance.arms).p if rule == "ratio" else None
    tape = np.random.default_rng(3).normal(size=(3, 20000)) + np.asarray(instance.arms @ instance.theta)[:, None]
    _, counts, stops = course_of(instance.arms, tape, ratios, 1)
    pulls, leap_counts, leap_stops = course_of(instance.arms, tape, ratios, 65536)
    both = pulls < len(counts)
    np.testing.assert_array_equal(leap_counts[both], counts[pulls[both]])
    np.testing.assert_array_equal(leap_stops[both], stops[pulls[both]])
    assert np.diff(pulls[both]).max() > 3
    assert len(pulls) < 0.7 * pulls[-1]


def pair_and_stop(arms, state, delta):
    """Computes leader, challenger and stop of a state, transcribed."""
    theta, images = np.asarray(state.theta), np.asarray(state.images)
    i = int(np.argmax(arms @ theta))
    widths = np.sqrt(np.maximum(np.sum((arms - arms[i]) * (images - images[i]), 1), 0))
    C = np.sqrt(float(state.logdet) + 2 * np.log(len(arms) ** 2 / delta)) + 2
    upper = (arms - arms[i]) @ theta + C * widths
    upper[i] = -np.inf
    return i, int(np.argmax(upper)), upper.max() <= 0


@pytest.mark.parametrize("rule", ["greedy", "ratio"])
def test_no_path_inside_the_envelope_breaks_a_leap(rule):
    """No interior round of a leap stops or changes arm or pair, for centred sums up to the certificate's bound.

    Two dozen states of different ages are tried, with sums on either side.
    """
    instance, delta = linear.soare(3, omega=0.03), 0.05
    arms = np.asarray(instance.arms)
    ratios = linear.ratio_tables(arms).p if rule == "ratio" else None
    settings = {"delta": delta, "ratios": ratios}
    leaping, plain = lingape(instance.arms, **settings, leap=65536), lingape(instance.arms, **settings)
    decide, observe = jax.jit(plain.decide), jax.jit(plain.observe)
    leap_decide = jax.jit(leaping.decide)
    advance = jax.jit(
        lambda seed, n: run(jax.random.key(seed), leaping, linear.environment(instance), max_rounds=n).state
    )
    leaps = []
    for seed, rounds in enumerate(range(40, 640, 25)):
        state = advance(seed, rounds)
        decision = leap_decide(KEY, state)
        arm, m = int(decision.action.arm), int(decision.action.times)
        if decision.stop or m < 2:
            continue
        leaps.append(m)
        i, j, _ = pair_and_stop(arms, state, delta)
        n, estimate = int(state.counts[arm]), arms[arm] @ np.asarray(state.theta)
        drift = abs(float(state.sums[arm]) / n - estimate) + np.sqrt((n + 1) * (np.log(n + 1) + 60)) / n
        stray = (m - 1) * drift + 7.6 * np.sqrt(m)
        leverage = float(state.leverage[arm])
        for pulls in sorted({1, m // 4, m // 2, m - 1} - {0}):
            for z in (-stray, -stray / 3, 0.0, stray / 3, stray):
                # This sum moves every x_k.theta_hat by x_k'A^-1 x_a times z.
                total = pulls * estimate + z * (1 + pulls * leverage)
                inside = observe(state, linear.Pull(jnp.asarray(arm), jnp.asarray(pulls)), jnp.asarray(total))
                now_i, now_j, stops = pair_and_stop(arms, inside, delta)
                assert {now_i, now_j} == {i, j}
                assert not stops
                assert decide(KEY, inside).action.arm == arm
    assert len(leaps) >= 3
    assert max(leaps) > 20


def test_the_certificate_is_monotone_in_the_length_of_the_leap():
    """A shorter limit gives the same leap cut at the limit, for every limit."""
    instance = linear.soare(3, omega=0.05)
    state = run(
        jax.random.key(3), lingape(instance.arms, delta=0.05, leap=65536), linear.environment(instance), max_rounds=300
    ).state
    longest = int(lingape(instance.arms, delta=0.05, leap=65536).decide(KEY, state).action.times)
    assert longest > 20
    for limit in (1, 2, 3, 7, 8, longest - 1, longest, longest + 1):
        times = lingape(instance.arms, delta=0.05, leap=limit).decide(KEY, state).action.times
        assert times == min(limit, longest)


@pytest.mark.slow
def test_leaps_leave_the_law_unchanged():
    """Kolmogorov-Smirnov of the stopping times, 400 against 400 runs; false alarm 1e-4."""
    from scipy.stats import ks_2samp

    instance = linear.soare(3, omega=0.1)

    def times(leap, seed):
        return jaxbandits.sweep(
            lambda task, key: (lingape(instance.arms, delta=0.05, leap=leap), linear.environment(instance)),
            seeds=400,
            key=jax.random.key(seed),
            max_rounds=10**6,
            progress=False,
        )

    plain, leaping = times(1, 1), times(65536, 2)
    assert leaping.stats.rounds < 0.5 * plain.stats.rounds
    assert ks_2samp(plain.columns["pulls"], leaping.columns["pulls"]).pvalue > 1e-4


# Statistics


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instance", "leap", "seeds", "mean", "se"),
    [
        pytest.param(linear.canonical(0.5), 1, 1000, 2783, 30, id="canonical"),
        pytest.param(linear.soare(5), 65536, 400, 748e3, 4e3, id="soare-leap"),
    ],
)
def test_mean_stopping_time(instance, leap, seeds, mean, se):
    """Within 4 standard errors of a mean that another implementation measured; every answer is right."""
    results = jaxbandits.sweep(
        lambda task, key: (lingape(instance.arms, delta=0.05, leap=leap), linear.environment(instance)),
        seeds=seeds,
        key=jax.random.key(4),
        max_rounds=10**6,
        progress=False,
    )
    summary = results.summary()
    assert summary["stopped"] == seeds
    assert abs(summary["pulls_mean"][0] - mean) < 4 * np.hypot(summary["pulls_se"][0], se)
    assert (results.columns["answer"] == 0).all()


def test_errors_are_counted_where_they_must_happen():
    """An over-confident setting errs far more often than delta, so the counting of errors has power."""
    instance = linear.canonical(0.1, d=3)
    results = jaxbandits.sweep(
        lambda task, key: (
            lingape(instance.arms, delta=0.05, noise_scale=0.05, norm_bound=0.0, union_bound=1.0),
            linear.environment(instance),
        ),
        seeds=500,
        key=jax.random.key(5),
        max_rounds=10**5,
        progress=False,
    )
    assert (results.columns["status"] == Status.STOPPED).all()
    assert np.mean(results.columns["answer"] != 0) > 0.3


@pytest.mark.slow
def test_float32_with_refresh_has_the_right_mean():
    """soare(2, omega=0.1): float32 and float64 means agree within 4 standard errors (600 runs each)."""

    def times(dtype, seed):
        instance = linear.soare(2, omega=0.1, dtype=dtype)
        results = jaxbandits.sweep(
            lambda task, key: (lingape(instance.arms, delta=0.05), linear.environment(instance)),
            seeds=600,
            key=jax.random.key(seed),
            max_rounds=10**6,
            progress=False,
        )
        assert (results.columns["status"] == Status.STOPPED).all()
        return results.columns["pulls"]

    single, double = times(jnp.float32, 1), times(jnp.float64, 2)
    se = np.hypot(single.std() / np.sqrt(600), double.std() / np.sqrt(600))
    assert abs(single.mean() - double.mean()) < 4 * se


@pytest.mark.slow
@pytest.mark.processes
def test_runs_without_64_bit():
    """float32 throughout, in a process where `jax_enable_x64` is off."""
    code = """
import jax, jaxbandits
from jaxbandits import linear
jax.config.update("jax_numpy_dtype_promotion", "strict")
instance = linear.canonical(1.0, d=3)
assert instance.arms.dtype == "float32"
results = jaxbandits.sweep(
    lambda task, key: (linear.lingape(instance.arms, delta=0.1), linear.environment(instance)),
    seeds=20, key=jax.random.key(0), max_rounds=100_000, progress=False,
)
assert (results.columns["status"] == 1).all() and (results.columns["answer"] == 0).all()
assert results.columns["pulls"].dtype == "int32"
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# Bad input

ARMS = np.eye(3)
ASYMMETRIC = np.full((3, 3, 3), 1 / 3)
ASYMMETRIC[0, 1] = (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"ratios": jnp.ones((3, 3, 3))},
            "ratios must sum to 1 over the last axis for every i != j",
        ),
        ({"ratios": ASYMMETRIC}, r"ratios must be the same for \(i, j\) and \(j, i\)"),
        ({"leap": linear.Leap(margin=5.0)}, "leap.margin must be at least 7, got 5.0"),
        (
            {"leap": 65536, "arms": np.eye(3, dtype=jnp.float32)},
            "arms must be float64 with leap > 1, got .*float32",
        ),
    ],
)
def test_bad_input(settings, message):
    settings = {"delta": 0.1, "arms": ARMS} | settings
    with pytest.raises(ValueError, match=message):
        lingape(settings.pop("arms"), **settings)


@pytest.mark.parametrize("arms", [jnp.eye(3), np.eye(3)])
def test_concrete_values_are_checked_in_a_trace_too(arms):
    """A sweep traces its `build`, and reports a bad argument there as anywhere else."""

    delta = jnp.asarray(1.5)

    def build(task, key):
        return lingape(arms, delta=delta), linear.environment(linear.canonical(0.5, d=3))

    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 1.5"):
        jaxbandits.sweep(build, seeds=2, key=KEY, max_rounds=10, progress=False)


@pytest.mark.parametrize(
    "rule",
    [
        partial(lingape, delta=0.1),
        partial(linear.lingape_glr, stop=linear.likelihood_ratio(thresholds.gk16(), delta=0.1)),
        partial(linear.uniform, stop=linear.likelihood_ratio(thresholds.gk16(), delta=0.1)),
        partial(linear.l_t3c, stop=linear.likelihood_ratio(thresholds.gk16(), delta=0.1, glr_ridge=0)),
        partial(linear.lin_ucb, delta=0.1, norm_bound=1.0),
        partial(linear.lin_ts, width=linear.Proved(0.1, 1.0, 100)),
    ],
)
def test_rank_one_updates_that_lose_their_digits_are_refused(rule):
    """Widths would cancel to 0, so that LinGapE would stop after K pulls, and other rules would reach a NaN."""
    for dtype, length, least in (("float32", 1e4, r"1.2e\+04"), ("float64", 1e8, r"2.2e\+03")):
        with pytest.raises(ValueError, match=f"ridge must be at least {least}, .* times the largest .* in {dtype}"):
            rule(length * jnp.eye(3, dtype=dtype))
    with pytest.raises(ValueError, match=r"ridge must be at least 0.00012, .* \(scale the problem, .*\), got 1e-08"):
        rule(jnp.eye(3, dtype="float32"), ridge=1e-8)
    rule(80 * jnp.eye(3, dtype="float32"))
    rule(1e4 * jnp.eye(3))


def test_sweep_names_a_row_whose_ridge_is_too_small():
    arms = jnp.eye(3, dtype="float32")
    environment = linear.environment(linear.Instance(arms, jnp.array([0.5, 0, 0], "float32"), jnp.float32(1)))
    tasks = {"length": np.array([1.0, 1e3], "float32")}
    with pytest.raises(ValueError, match=r"row 1 of tasks: ridge must be at least 1.2e-04 times the largest \|x\|\^2"):
        jaxbandits.sweep(
            lambda task, key: (lingape(task["length"] * arms, delta=0.1), environment),
            tasks,
            seeds=1,
            key=KEY,
            max_rounds=10,
            progress=False,
        )


@pytest.mark.parametrize("seed", range(5))
def test_widths_at_the_smallest_ridge_are_right_in_float32(seed):
    """At the smallest ridge that is accepted, widths are right within 5 % before any rebuild."""
    arms = np.float32(random_arms(seed, K=8, d=4))
    ridge = 1.25e-4 * float((arms**2).sum(axis=1).max())
    algorithm, once = lingape(jnp.asarray(arms), delta=0.1, ridge=ridge), jnp.ones((), int)
    pulls = np.random.default_rng(seed).permutation(np.repeat(np.arange(8), 10))

    @jax.jit
    def pulled():
        def one(state, arm):
            return algorithm.observe(state, linear.Pull(arm, once), jnp.float32(0)), None

        return lax.scan(one, algorithm.init(KEY), jnp.asarray(pulls))[0].images

    images, x = np.float64(pulled()), np.float64(arms)
    inverse = np.linalg.inv(ridge * np.eye(4) + 10 * x.T @ x)
    i, j = np.triu_indices(8, 1)
    widths = np.sqrt(np.sum((x[i] - x[j]) * (images[i] - images[j]), axis=1))
    right = np.sqrt(np.einsum("md,de,me->m", x[i] - x[j], inverse, x[i] - x[j]))
    np.testing.assert_allclose(widths, right, rtol=0.05)
