"""Bounds and characteristic times against literal loops over the formulas."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.kcenter import (
    characteristic_time,
    lower_bound,
    most_queries,
    noisy_lower_bound,
    stage_times,
    upper_bound,
)

DELTA = 0.1
lower = jax.jit(lower_bound)
upper = jax.jit(upper_bound)
times_of = jax.jit(lambda distances, centers, noise_scale: stage_times(distances, centers, noise_scale=noise_scale))


def two_valued(n: int, m: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.random((n, m)) < rng.uniform(0.05, 0.95, (n, 1))
    return (points[:, None] != points).mean(-1)


def greedy_order(distances: np.ndarray, k: int) -> list[int]:
    centers = [0]
    while len(centers) < k:
        nearest = distances[:, centers].min(1)
        nearest[centers] = -1
        centers.append(int(nearest.argmax()))
    return centers


def kl(p: float, q: float) -> float:
    terms = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in terms if a > 0)


def literal_lower_bound(d: np.ndarray, s: list[int], delta: float) -> tuple[float, float]:
    n, k, lg = len(d), len(s), math.log(1 / (2.4 * delta))
    others = sum(
        max(lg / max(kl(d[v, s[i]], d[s[p], s[i]]) for i in range(p)) for p in range(1, k))
        for v in range(n)
        if v not in s
    )
    centers = sum(
        max(
            (lg / max(kl(d[s[p], s[i]], d[v, s[i]]) for i in range(p)) for v in range(n) if v not in s[: p + 1]),
            default=0,
        )
        for p in range(1, k)
    )
    return others / 2, centers / 2


def literal_upper_bound(d: np.ndarray, s: list[int], m: int, delta: float, c: float) -> float:
    n, k = len(d), len(s)

    def term(v: int, i: int, p: int) -> float:
        nearest = [min(d[u, j] for j in s[:p]) for u in range(n)]
        x = max(d[v, s[i]] - nearest[v], max(nearest) - d[v, s[i]])
        if x <= 0:
            return 2 * m
        inner = 2 * math.log(2 / x)
        loops = max(math.log(inner), math.log(2)) if inner > 0 else math.log(2)
        return min(c * math.log(n**2 / delta) * loops / x**2, 2 * m)

    total = sum(max(term(v, i, p) for p in range(i + 1, k)) for v in range(n) if v not in s for i in range(k - 1))
    return total + sum(max(term(s[a], i, p) for p in range(i + 1, a + 1)) for a in range(k) for i in range(a))


@pytest.mark.parametrize(("n", "k", "seed"), [(12, 4, 0), (12, 4, 1), (5, 5, 3)])
def test_bounds_against_literal_loops(n, k, seed):
    distances = two_valued(n, 301, seed)
    centers = greedy_order(distances, k)
    table, order = jnp.array(distances), jnp.array(centers)
    np.testing.assert_allclose(lower(table, order, DELTA), literal_lower_bound(distances, centers, DELTA), rtol=1e-9)
    for m, c in ((301, 1.0), (10**7, 0.3)):
        expected = literal_upper_bound(distances, centers, m, DELTA, c)
        assert upper(table, order, m, DELTA, c) == pytest.approx(expected, rel=1e-9)
        assert expected <= most_queries(n, m, k)


def test_bounds_by_hand():
    """Distances .25 and .81 from node 0, centers 0 and 2: one arm each, gap .56, and log(n^2/delta) = log 90."""
    distances = jnp.array([[0, 0.25, 0.81], [0.25, 0, 0.16], [0.81, 0.16, 0]])
    centers = jnp.array([0, 2])
    lg = math.log(1 / 0.24)
    one, two = (
        0.25 * math.log(0.25 / 0.81) + 0.75 * math.log(0.75 / 0.19),
        0.81 * math.log(0.81 / 0.25) + 0.19 * math.log(0.19 / 0.75),
    )
    np.testing.assert_allclose(lower(distances, centers, DELTA), [lg / one / 2, lg / two / 2], rtol=1e-12)
    rival = math.log(90) * math.log(2 * math.log(2 / 0.56)) / 0.56**2
    assert upper(distances, centers, 10**6, DELTA) == pytest.approx(rival + 2e6, rel=1e-12)
    assert upper(distances, centers, 4, DELTA) == 16 == most_queries(3, 4, 2)


def test_upper_bound_at_a_large_gap_by_hand():
    distances = jnp.array([[0.0, 0.0, 3.0], [0.0, 0.0, 3.0], [3.0, 3.0, 0.0]])
    expected = math.log(90) * math.log(2) / 9 + 2e6
    assert upper(distances, jnp.array([0, 2]), 10**6, DELTA) == pytest.approx(expected, rel=1e-12)


def test_equal_distances_make_the_bounds_infinite():
    distances = jnp.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.3], [0.5, 0.3, 0.0]])
    centers = jnp.array([0, 1])
    assert all(np.isinf(half) for half in lower(distances, centers, DELTA))
    assert np.isinf(times_of(distances, centers, 1.0)[0])
    assert np.isinf(noisy_lower_bound(distances, centers, noise_scale=1.0, delta=DELTA))
    assert np.isinf(characteristic_time(jnp.array([[0.5], [0.5], [0.3]]), noise_scale=1.0))


def test_lower_bounds_are_zero_at_a_large_delta():
    distances = jnp.array([[0, 0.25, 0.81], [0.25, 0, 0.16], [0.81, 0.16, 0]])
    centers = jnp.array([0, 2])
    assert sum(lower(distances, centers, 0.5)) == 0
    assert noisy_lower_bound(distances, centers, noise_scale=1.0, delta=0.5) == 0


def test_characteristic_time():
    """Appendix C, and one slot with 4 rivals at gap .2: 2 (1 + sqrt 4)^2 / .04."""
    example = jnp.array([[0.45, 0.5, 0.55], [0.35, 0.4, 0.6], [0.3, 0.47, 0.52]])
    assert characteristic_time(example, noise_scale=1.0) == pytest.approx(1085.694, abs=5e-4)
    assert characteristic_time(example, noise_scale=jnp.full((3, 3), 2.0**0.5)) == pytest.approx(2 * 1085.694, abs=1e-3)
    rivals = jnp.array([[0.5], [0.3], [0.3], [0.3], [0.3]])
    assert characteristic_time(rivals, noise_scale=1.0) == pytest.approx(450, rel=1e-8)
    assert characteristic_time(rivals.astype(jnp.float32), noise_scale=1.0) == pytest.approx(450, rel=1e-5)


def test_stage_times_are_characteristic_times_of_the_stages():
    distances = two_valued(6, 501, 4)
    centers = greedy_order(distances, 4)
    times = times_of(jnp.array(distances), jnp.array(centers), 0.5)
    for p in range(1, 4):
        candidates = np.delete(np.arange(6), centers[:p])
        means = jnp.array(distances[candidates][:, centers[:p]])
        assert times[p - 1] == pytest.approx(float(characteristic_time(means, noise_scale=0.5)), rel=1e-7)
    total = noisy_lower_bound(jnp.array(distances), jnp.array(centers), noise_scale=0.5, delta=0.01)
    assert total == pytest.approx(float(times.sum()) * math.log(1 / 0.024), rel=1e-12)
    by_stage = times_of(jnp.array(distances), jnp.array(centers), jnp.sqrt(jnp.array([0.25, 0.5, 1.0])))
    np.testing.assert_allclose(by_stage, times * jnp.array([1.0, 2.0, 4.0]), rtol=1e-8)
    by_arm = times_of(jnp.array(distances), jnp.array(centers), jnp.full((6, 3), 0.5**0.5))
    np.testing.assert_allclose(by_arm, 2 * times, rtol=1e-8)


def test_the_last_stage_of_all_nodes_takes_no_time():
    distances = two_valued(4, 301, 6)
    times = times_of(jnp.array(distances), jnp.array(greedy_order(distances, 4)), 1.0)
    assert times[2] == 0
    assert np.all(times[:2] > 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, s: lower_bound(-d, s, 0.1), "distances must lie in [0, 1], got"),
        (lambda d, s: lower_bound(d, s[:1], 0.1), "centers must have shape (k,) with 2 <= k <= n, got (1,)"),
        (lambda d, s: lower_bound(d, s + 2, 0.1), "centers must lie in [0, 2], got [2 3]"),
        (lambda d, s: stage_times(d, s, noise_scale=jnp.ones(4)), "noise_scale must have shape () or (1,) or (3, 1)"),
    ],
)
def test_bad_input(call, message):
    distances = jnp.array([[0, 0.25, 0.81], [0.25, 0, 0.16], [0.81, 0.16, 0]])
    with pytest.raises(ValueError, match=re.escape(message)):
        call(distances, jnp.array([0, 1]))
