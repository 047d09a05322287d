"""Hardness measures against enumeration, hand-worked stopping times and literal lotteries."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.fullbandit import (
    Estimate,
    Instance,
    Sampling,
    all_superarms,
    cyclic_support,
    ellipsoid_radius,
    gap,
    hardness,
    icb_bound,
    lemma1_radius,
    make_design,
    mean_field_time,
    oracle_time,
    random_support,
    rho,
    rho_independent,
    saqm_bound,
    surrogates,
)

PAIRS = make_design([[1, 1, 0], [1, 0, 1], [0, 1, 1]], 2)
LINE = jnp.array([1.0, 0.5, 0.0])
CYCLE = make_design(cyclic_support(5, 3), 3)
FIVE = jnp.array([1.0, 0.8, 0.6, 0.2, 0.0])


def stop(rule, design=PAIRS, theta=LINE, **arguments):
    return mean_field_time(rule, design, Instance(theta, design.k), **({"delta": 0.05, "epsilon": 0.5} | arguments))


def test_gap_by_hand():
    assert gap(Instance(jnp.array([0.1, 0.9, 0.4, 0.7]), 2)) == pytest.approx(0.3)
    assert gap(Instance(jnp.array([0.7, 0.5, 0.5, 0.1]), 2)) == 0


@pytest.mark.parametrize(("n", "k", "size"), [(6, 2, 9), (9, 4, 18), (8, 6, 16)])
def test_rho_against_enumeration(n, k, size):
    design = make_design(random_support(1, n, k, size=size), k)
    inverse = np.linalg.inv(design.gram)
    norms = [inverse[np.ix_(members, members)].sum() for members in itertools.combinations(range(n), k)]
    assert rho(design) == pytest.approx(max(norms))
    assert max(norms) >= n
    assert 0.8 * max(norms) < rho(design, method="greedy") <= max(norms) * (1 + 1e-12)
    spectral = rho(design, method="spectral")
    assert spectral == pytest.approx(k * np.linalg.eigvalsh(inverse)[-1], rel=1e-7)
    assert spectral >= max(norms)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (6, 3), (9, 4)])
def test_all_superarms_with_equal_shares(n, k):
    design = make_design(all_superarms(n, k), k)
    swaps, least = min(k, n - k), k * (n - k) / (n * (n - 1))
    assert rho(design) == pytest.approx(n)
    assert rho(design, method="greedy") == pytest.approx(n)
    assert rho_independent(design) == pytest.approx(4 * swaps**2 * ((1 - 1 / n) / least + 1 / k**2))


def test_rho_independent_takes_the_widest_arms():
    design = make_design(random_support(3, 7, 2), 2)
    diagonal = np.sort(np.diagonal(np.linalg.inv(design.gram)))
    assert rho_independent(design) == pytest.approx(np.sqrt(diagonal[-4:]).sum() ** 2)


def test_hardness_by_hand():
    assert hardness(9.0, 0.5, 1.0) == 4
    assert hardness(9.0, 0.0, 0.0) == jnp.inf


@pytest.mark.parametrize(
    ("rule", "options", "time", "factor"),
    [
        ("saqm", {}, 9363.916, 3 * (1 + 1 / 0.9) ** 2),
        ("icb", {}, 1290.387, 9),
        ("icb", {"radius": "ellipsoid"}, 6051.696, 9),
        ("exhaustive", {}, 3861.988, 6),
        ("spectral", {}, 3861.988, 6),
    ],
)
def test_mean_field_by_hand(rule, options, time, factor):
    """Every |chi|^2 is 3, the |y|^2 of a swap 6 and a diagonal entry 2.25; gap + epsilon = 1."""
    stopping_time = stop(rule, **options)
    assert stopping_time == pytest.approx(time, rel=2e-7)
    radius = lemma1_radius if (rule, options) == ("icb", {}) else ellipsoid_radius
    assert stopping_time == pytest.approx(factor * float(radius(stopping_time, 3, 2, 0.05)) ** 2, rel=1e-12)


def test_bounds_by_hand():
    """The hardness gives the bounds the factors of the case above."""
    saqm_factor = 3 * (1 + 1 / 0.9) ** 2 / (3 + 1 / 0.9) ** 2
    assert saqm_bound(saqm_factor, 3, 2, delta=0.05) == pytest.approx(9363.916, rel=2e-7)
    assert icb_bound(9 / 4, 3, 2, delta=0.05) == pytest.approx(1290.387, rel=1e-6)
    assert icb_bound(9 / 4, 3, 2, delta=0.05, radius="ellipsoid") == pytest.approx(6051.696, rel=1e-6)


def test_bounds_at_the_ends():
    assert saqm_bound(jnp.inf, 3, 2, delta=0.05) == jnp.inf
    assert icb_bound(0.0, 3, 2, delta=0.05) == 1


def test_mean_field_scales_with_the_noise_and_never_ends_on_a_tie():
    once, thrice = (float(stop("exhaustive", noise_scale=scale)) for scale in (0.5, 1.5))
    assert 9 < thrice / once < 15
    for rule in ("saqm", "icb"):
        assert stop(rule, theta=jnp.array([1.0, 0.5, 0.5]), epsilon=0.0) == jnp.inf


def test_mean_field_in_float32():
    design = make_design(PAIRS.support, 2, dtype=jnp.float32)
    for rule in ("saqm", "spectral", "sa_foa"):
        time = stop(rule, design)
        assert time.dtype == jnp.float32
        assert time == pytest.approx(float(stop(rule)), rel=1e-4)


def test_sa_foa_stops_before_the_exhaustive_rule():
    """Five arms: between 30000 and 46950 pulls "paper" peeling begins to miss the rival {0, 1, 3}, "exact" later."""
    five = partial(stop, design=CYCLE, theta=FIVE)
    assert five("exhaustive", epsilon=0.1) == pytest.approx(166128, abs=1)
    paper = five("sa_foa", epsilon=0.2, sampling=None)
    assert 30000 < paper <= 46950 * 1.002
    exact = five("sa_foa", epsilon=0.2, sampling=None, reduction="exact")
    assert 46950 < exact <= 166128 * 1.002


@pytest.mark.parametrize("samples", [1, 2])
def test_sa_foa_against_its_lotteries_one_by_one(samples):
    design = make_design(random_support(2, 6, 3), 3)
    theta, scale, s = jnp.array([0.9, 0.8, 0.7, 0.5, 0.3, 0.0]), 0.1, 12
    t = jnp.arange(s, 4000.0)
    leads = jax.vmap(
        lambda t: surrogates(design, Estimate(theta, design.inverse / t, t), t, delta=0.05, noise_scale=scale).leads
    )(t)
    success = (1 - np.mean(np.asarray(leads) > 0.05, axis=1)) ** (6 * samples)
    survival = np.cumprod(1 - success)
    assert survival[-1] == 0
    mean = s + survival.sum()
    assert np.any((success > 0) & (success < 1))
    arguments = {"epsilon": 0.1, "noise_scale": scale, "sampling": Sampling(samples)}
    assert stop("sa_foa", design, theta, **arguments) == pytest.approx(mean, rel=5e-3)
    late = stop("sa_foa", design, theta, **arguments, first_test=10_000)
    assert late == pytest.approx(10_000, abs=1)


def test_oracle_time_by_hand():
    """A pair leaves one arm out, so |e_i - e_j|^2 is 1/p_i + 1/p_j, p_i the share of the pair without i."""
    p1, p2 = np.meshgrid(*[np.linspace(0.001, 0.999, 999)] * 2)
    p0 = 1 - p1 - p2
    with np.errstate(divide="ignore"):
        time = np.where(p0 > 0, 2 * np.maximum((1 / p1 + 1 / p2) / 0.25, 1 / p0 + 1 / p2), np.inf)
    assert oracle_time(Instance(LINE, 2)) == pytest.approx(time.min(), rel=5e-3)
    assert oracle_time(Instance(LINE, 2, 0.5)) == pytest.approx(time.min() / 4, rel=5e-3)


def test_oracle_time_of_equal_leads_and_of_fewer_superarms():
    """One bad arm among n: the n-1 rivals each exchange a good arm for it, and differ only in names."""
    theta = np.array([1.0, 1.0, 1.0, 0.5])
    whole = oracle_time(Instance(theta, 3))
    # A set leaves one arm out: 1/p_3 + 1/p_i for i < 3, least at p_3 = sqrt(3) p_i.
    assert whole == pytest.approx(3 * (1 + math.sqrt(3)) ** 2 / 0.25, rel=5e-3)
    theta = np.array([0.9, 0.7, 0.2, 0.1, 0.0])
    assert oracle_time(Instance(theta, 3), support=cyclic_support(5, 3)) > oracle_time(Instance(theta, 3))
    assert oracle_time(Instance(np.array([1.0, 0.5, 0.5]), 2)) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            partial(gap, Instance(PAIRS.gram, 2)),
            r"instance.theta must be an array of .* of shape \(n,\), got",
        ),
        (
            partial(stop, "icb", theta=FIVE),
            "instance.theta and design must be of one size, got: .* has 5, .* has 3",
        ),
        (
            partial(stop, "saqm", sampling=None),
            "options must be among .*alpha.* for saqm, got .*sampling",
        ),
        (partial(stop, "sa_foa", first_test=2), "first_test must be an integer of at least 3, got 2"),
        (partial(oracle_time, Instance(np.arange(13.0), 2)), "instance.theta must have at most 12 arms, got 13"),
        (partial(oracle_time, Instance(LINE, 2, 0.0)), "instance.noise_scale must be positive, got 0.0"),
    ],
)
def test_bad_argument_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
