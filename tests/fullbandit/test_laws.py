"""Laws of every rule of the family, for any instance, by property-based tests. Symmetries of runs are in tests/laws."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.programs import wide_except
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandits import Status, fullbandit, run

N, K, SIZE, DELTA, EPSILON, SCALE, NOISE = 6, 3, 9, 0.1, 0.4, 0.5 / 3, 0.3
RULES = {
    "saqm": fullbandit.saqm,
    "limit": fullbandit.saqm,
    "icb": fullbandit.icb,
    "exhaustive": fullbandit.exhaustive,
    "spectral": fullbandit.spectral,
    "sa_foa": fullbandit.sa_foa,
}
VERDICTS = {
    "saqm": fullbandit.saqm_rule,
    "certain saqm": functools.partial(fullbandit.saqm_rule, alpha="exact"),
    "icb": fullbandit.icb_rule,
    "ellipsoid": functools.partial(fullbandit.icb_rule, radius="ellipsoid"),
    "exhaustive": fullbandit.exhaustive_rule,
    "spectral": fullbandit.spectral_rule,
}
TIMES = ("saqm", "icb", "exhaustive", "spectral", "sa_foa")
seeds, constants, units = st.integers(0, 2**32 - 1), st.floats(-10, 10), st.floats(0.01, 100)
every_rule = pytest.mark.parametrize("rule", wide_except(RULES, "saqm", "sa_foa"))
every_verdict = pytest.mark.parametrize("rule", [*VERDICTS, "sa_foa"])
every_time = pytest.mark.parametrize("rule", TIMES)
quickly = settings(max_examples=4, deadline=None, derandomize=True)
often = settings(max_examples=15, deadline=None, derandomize=True)


def instance(seed, *, equal=False):
    """Draws a design of random super-arms, with random or equal shares, and random means."""
    rng = np.random.default_rng(seed)
    shares = np.ones(SIZE) if equal else rng.uniform(1, 3, SIZE)
    support = fullbandit.random_support(seed, N, K, size=SIZE)
    return fullbandit.make_design(support, K, weights=shares / shares.sum()), jnp.asarray(rng.uniform(0, 1, N))


def permuted(design, order):
    return fullbandit.make_design(np.asarray(design.support)[:, order], K, weights=np.asarray(design.weights))


def an_order(seed):
    return np.random.default_rng(seed).permutation(N)


# Whole runs


@functools.cache
def compiled(rule):
    """Compiles the end of a run, as a function of the seed, the design and the means."""

    @jax.jit
    def end(key, design, theta):
        matrix = "limit" if rule == "limit" else "counts"
        growth = fullbandit.Growth(0.005 if rule == "sa_foa" else 0.001, pull_variance=K * NOISE**2)
        pace = fullbandit.Pace(growth=growth, design_matrix=matrix)
        algorithm = RULES[rule](design, delta=DELTA, epsilon=EPSILON, noise_scale=SCALE, pace=pace)
        truth = fullbandit.Instance(theta, K, NOISE)
        return run(key, algorithm, fullbandit.environment(truth, design), max_rounds=3000)

    return lambda seed, design, theta: end(jax.random.key(seed), design, theta)


@every_rule
@quickly
@given(seed=seeds, equal=st.booleans())
def test_a_run_ends_with_the_counts_of_its_design_and_with_k_arms(rule, seed, equal):
    design, theta = instance(seed, equal=equal)
    end = compiled(rule)(seed, design, theta)
    assert end.status == Status.STOPPED
    assert end.pulls == end.state.counts.sum() >= SIZE
    np.testing.assert_array_equal(end.state.counts, fullbandit.tracking_counts(design, end.pulls))
    assert end.answer.sum() == K


# Single tests of a rule


@functools.cache
def margin_of(rule):
    """Compiles a rule's margin as a function of the design, the estimate and t; A^-1 is a multiple of Lambda^-1 / t."""

    @jax.jit
    def margin(design, theta, level, t, delta, epsilon, scale):
        estimate = fullbandit.Estimate(theta, design.inverse / level, level)
        if rule == "sa_foa":
            rivals = fullbandit.surrogates(design, estimate, t, delta=delta, noise_scale=scale)
            return epsilon - rivals.leads.max()
        return VERDICTS[rule](design, estimate, t, delta=delta, epsilon=epsilon, noise_scale=scale).margin

    def call(design, theta, t=60.0, *, wider=1.0, delta=DELTA, epsilon=EPSILON, scale=SCALE):
        numbers = (jnp.asarray(x) for x in (t / wider, t, delta, epsilon, scale))
        return float(margin(design, theta, *numbers))

    return call


# Options of a rule that no case of tests/laws has.
@pytest.mark.parametrize("rule", ["certain saqm", "ellipsoid"])
@often
@given(seed=seeds, constant=constants, unit=units)
def test_order_origin_and_unit_of_the_means_change_no_margin(rule, seed, constant, unit):
    design, theta = instance(seed)
    order, margin = an_order(seed), margin_of(rule)
    once = pytest.approx(margin(design, theta), rel=1e-9, abs=1e-9)
    assert margin(permuted(design, order), theta[order]) == once
    assert margin(design, theta + constant) == once
    assert margin(design, unit * theta, epsilon=unit * EPSILON, scale=unit * SCALE) / unit == once


@every_verdict
@often
@given(seed=seeds, factor=st.floats(1, 10), t=st.floats(9, 1e6))
def test_margin_grows_with_epsilon_and_falls_with_noise_and_confidence(rule, seed, factor, t):
    design, theta = instance(seed)
    margin = functools.partial(margin_of(rule), design, theta, t)
    once = margin()
    assert margin(epsilon=factor * EPSILON) == pytest.approx(once + (factor - 1) * EPSILON, rel=1e-9, abs=1e-9)
    # More noise widens the intervals as fewer pulls do.
    assert margin(scale=factor * SCALE) == pytest.approx(margin(wider=factor**2), rel=1e-9, abs=1e-9)
    # SA-FOA searches rivals anew, and may miss earlier ones.
    if rule != "sa_foa":
        assert margin(scale=factor * SCALE) <= once + 1e-9
        assert margin(delta=DELTA / factor) <= once + 1e-9


@often
@given(seed=seeds, equal=st.booleans(), t=st.floats(9, 1e4))
def test_no_proved_rule_holds_before_the_exhaustive_one(seed, equal, t):
    design, theta = instance(seed, equal=equal)
    exhaustive = margin_of("exhaustive")(design, theta, t)
    for rule in ("certain saqm", "ellipsoid", "spectral"):
        assert margin_of(rule)(design, theta, t) <= exhaustive + 1e-9
    # Rivals from linearising bound it from the other side, if they are not the best set itself.
    assert margin_of("sa_foa")(design, theta, t) >= min(exhaustive, EPSILON) - 1e-9


# The design, the environments, and the hardness of an instance


@often
@given(seed=seeds, equal=st.booleans(), t=st.integers(SIZE, 10**7))
def test_next_pull_is_of_the_superarm_furthest_behind(seed, equal, t):
    design, _ = instance(seed, equal=equal)
    counts, following = (np.asarray(tracked(design, t)) for t in (t, t + 1))
    assert counts.sum() == t
    pulled = int(np.argmax(following - counts))
    np.testing.assert_array_equal(following - counts, np.arange(SIZE) == pulled)
    lags = counts / np.asarray(design.weights)
    assert lags[pulled] <= lags.min() * (1 + 1e-12)


tracked = jax.jit(fullbandit.tracking_counts)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli_normal"])
@often
@given(seed=seeds, first=st.integers(0, 10**6), second=st.integers(0, 10**6))
def test_means_and_variances_of_blocks_add_up(name, seed, first, second):
    design, theta = instance(seed)
    shares = np.random.default_rng(seed).uniform(0, 1, SIZE)
    blocks = [np.floor(pulls * shares).astype(int) for pulls in (first, second)]
    both, one = blocks[0] + blocks[1], np.ones(SIZE, int)
    a, b, together, single = (np.stack(moments(name)(design, theta, block)) for block in (*blocks, both, one))
    np.testing.assert_allclose(together, a + b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(together, both * single, rtol=1e-9, atol=1e-12)


@functools.cache
def moments(name):
    """Computes the mean and the variance of a block's sums from the responses to noise 0 and noise 1."""

    @jax.jit
    def both(design, theta, counts):
        truth = fullbandit.Instance(theta, K, NOISE)
        environment = fullbandit.environment(truth, design, noise=name)
        pulls = fullbandit.Pulls(counts)
        quiet, loud = (environment.respond((), pulls, jnp.full(SIZE, noise))[0] for noise in (0.0, 1.0))
        return quiet, (loud - quiet) ** 2

    return both


@functools.cache
def time_of(rule):
    """Compiles the stopping time without noise, as a function of the design, the means and the unit of reward."""

    @jax.jit
    def time(design, theta, unit):
        arguments = {"delta": DELTA, "epsilon": EPSILON * unit, "noise_scale": SCALE * unit}
        options = {"saqm": {"alpha": "exact"}, "icb": {"radius": "ellipsoid"}}.get(rule, {})
        return fullbandit.mean_field_time(rule, design, fullbandit.Instance(unit * theta, K), **arguments, **options)

    return lambda design, theta, unit=1.0: float(time(design, theta, jnp.asarray(unit)))


@every_time
@quickly
@given(seed=seeds, constant=constants, unit=units)
def test_order_origin_and_unit_of_the_means_change_no_stopping_time(rule, seed, constant, unit):
    design, theta = instance(seed)
    order, time = an_order(seed), time_of(rule)
    once = time(design, theta)
    assert 1 < once < np.inf
    assert time(permuted(design, order), theta[order]) == pytest.approx(once, rel=1e-9)
    assert time(design, theta + constant) == pytest.approx(once, rel=1e-9)
    assert time(design, theta, unit) == pytest.approx(once, rel=1e-9)


@often
@given(seed=seeds, equal=st.booleans())
def test_the_exhaustive_rule_is_the_first_to_hold_and_bounds_hold_for_all(seed, equal):
    design, theta = instance(seed, equal=equal)
    first = time_of("exhaustive")(design, theta)
    for rule in ("saqm", "icb", "spectral"):
        assert first <= time_of(rule)(design, theta) * (1 + 1e-9)
    saqm, icb = (
        fullbandit.hardness(rho(design), fullbandit.gap(fullbandit.Instance(theta, K)), EPSILON) for rho in RHOS
    )
    settings = {"delta": DELTA, "noise_scale": SCALE}
    assert time_of("saqm")(design, theta) <= fullbandit.saqm_bound(saqm, N, K, alpha=1.0, **settings)
    assert time_of("icb")(design, theta) <= fullbandit.icb_bound(icb, N, K, radius="ellipsoid", **settings)


RHOS = jax.jit(fullbandit.rho), jax.jit(fullbandit.rho_independent)


@often
@given(seed=seeds, constant=constants)
def test_loss_depends_only_on_differences_of_means(seed, constant):
    _, theta = instance(seed)
    order = an_order(seed)
    best, other = fullbandit.top_set(theta, K), jnp.asarray(order < K)
    plain, shifted, permuted = (fullbandit.Instance(means, K) for means in (theta, theta + constant, theta[order]))
    lost = float(fullbandit.loss(plain, other))
    assert fullbandit.loss(plain, best) == pytest.approx(0, abs=1e-12)
    assert lost >= -1e-12
    assert fullbandit.loss(shifted, other) == pytest.approx(lost, abs=1e-12)
    assert fullbandit.loss(permuted, other[order]) == pytest.approx(lost, abs=1e-12)
    assert bool(fullbandit.is_right(plain, other, max(lost, 0)))
