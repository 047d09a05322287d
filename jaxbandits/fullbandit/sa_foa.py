"""SA-FOA: stops when no rival that it finds by sampling, and by linearising the width, can beat the estimated best."""

from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import known, require, require_positive
from jaxbandits.fullbandit.confidence import ellipsoid_radius
from jaxbandits.fullbandit.design import Design
from jaxbandits.fullbandit.problem import Block
from jaxbandits.fullbandit.state import Gram, check_run, estimator, next_counts, top_set
from jaxbandits.numerics.densest_subgraph import Reduction
from jaxbandits.numerics.linalg import dot, squared_norms

Mode = Literal["random", "all"]
Lottery = Literal["hazard", "draw"]
IDLE_GROWTH = 1.05  # between two tests while every surrogate blocks: no lottery could stop the run there


class State(NamedTuple):
    """All that has been seen, and how much luck is used up."""

    counts: Array  # int (s,)    pulls of every super-arm of the design
    sums: Array  # float (s,)    sums of their rewards
    pulls: Array  # int ()
    hazard: Array  # float ()    cumulated over all tests so far
    clock: Array  # float ()     the cumulated hazard at which the run stops


class Surrogates(NamedTuple):
    """The rivals found from every super-arm M_i of the design."""

    answer: Array  # bool (n,)   M^, the estimated best super-arm
    sets: Array  # bool (s, n)   S_i
    leads: Array  # float (s,)   by how much S_i may lead M^, 0 if it is M^; -inf where M_i is M^
    radius: Array  # float ()    C_t


def sa_foa(
    design: Design,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    draws: int = 1,
    threshold: Array | float = 0.5,
    mode: Mode = "random",
    reduction: Reduction = "paper",
    lottery: Lottery = "hazard",
    growth: Array | float | None = 1.01,
    first_test: Array | int | None = None,
    gram: Gram = "counts",
) -> Algorithm:
    """Tracks a design until no rival found from a random sample of its super-arms can lead by threshold epsilon.

    After every pull, draws n super-arms of the design are sampled with replacement. From each of them a rival of the
    estimated best super-arm is found by linearising the confidence width there and peeling a graph; see `surrogates`.

    The sampling of many pulls is carried out at once: with c of the s surrogates blocking, a test stops with
    probability q = (1 - c/s)^(draws n), and the run stops when the cumulated -log(1 - q) reaches an exponential
    variable. Between two evaluations of c it is taken as constant.

    Args:
        design: what to pull, `make_design(support, k)`; the run has its dtype.
        k: size of a super-arm, a Python int in 2..n-1.
        delta: () in (0, 1), admitted probability of error, as it enters the radius.
        epsilon: () > 0, admitted loss of the answer, in units of reward. At 0 a surrogate that finds nothing but the
            estimated best super-arm would end the run at once.
        sigma: () > 0, bound of the noise of one pull; k by default, for arms whose noise lies in [-1, 1].
        draws: samples per arm and test, a Python int, at least 1.
        threshold: () > 0; a lead above threshold epsilon blocks. 0.5 as printed, with which runs take 4 to 9 times the
            published numbers of pulls; with 1, 1.3 to 2.4 times.
        mode: "random" (the paper), or "all": every super-arm in every test. As every test is a new lottery, "random"
            stops up to 3 times earlier.
        reduction: see `quadratic_maximization`.
        lottery: "hazard", or "draw": the sample of each test is drawn literally, as `sampled_rows` of the state. This
            takes `growth=None`.
        growth: () > 1, greatest ratio of the pulls at two evaluations, or None: one pull a round. The mean stopping
            time differed from that of literal sampling by 1.6 +- 1.4 % at 1.01, 0.6 +- 1.4 % at 1.03 and 4.2 +- 1.5 %
            at 1.1 (4000 runs each, n = 6). While all surrogates block, at least 1.05.
        first_test: () at least s, the number of pulls before the first test; s, the size of the support, by default.
        gram: "counts": A of the pulls made; "limit": t Lambda in its place, without an inversion a test. With "limit"
            a uniform design is tested after whole cycles, unless `growth` is None.

    Returns:
        Algorithm with actions `Block` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, or the design is too ill-conditioned for its dtype.

    **Guarantee**: none, though no run on the published instances has been seen to fail. The rivals bound from below
    what any super-arm may lead by, not from above, so the run may stop before the rule of `exhaustive` permits.
    **Cost**: O(s n^2) a test, and that of the estimate (see `estimator`): 7 ms at n = 111, s = 222 on one core, 4.5
    with `gram="limit"`; some 300 to 600 tests a run.

    **float32** is for designs with cond(Lambda) up to 1e3, and may find other rivals where two are nearly equal.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 3.
    """
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    s, n = design.support.shape
    _check(s, epsilon, draws, threshold, mode, reduction, lottery, growth, first_test, gram)
    dtype = design.inverse.dtype
    estimate = estimator(design, gram=gram)
    first = jnp.asarray(s if first_test is None else first_test, int)
    bar = jnp.asarray(threshold, dtype) * jnp.asarray(epsilon, dtype)
    none = jnp.zeros(s, int)

    def hazard_of(state: State, blocks: Array) -> Array:
        if mode == "all":
            return _certain(~jnp.any(blocks), dtype)
        if lottery == "draw":
            return _certain(~jnp.any(blocks[sampled_rows(state.clock, state.pulls, s=s, samples=draws * n)]), dtype)
        return lottery_hazard(blocks.sum(), s=s, samples=draws * n, dtype=dtype)

    def init(key: Key) -> State:
        # A clock of 0 would stop where nothing permits it.
        clock = jnp.maximum(jax.random.exponential(key, (), dtype), jnp.finfo(dtype).tiny)
        return State(none, none.astype(dtype), jnp.zeros((), int), jnp.zeros((), dtype), clock)

    def decide(key: Key, state: State) -> Decision:
        del key
        t = jnp.maximum(state.pulls, 1).astype(dtype)
        seen = estimate(state.counts, state.sums)
        rivals = surrogates(
            seen.inverse,
            seen.theta,
            t,
            support=design.support,
            k=k,
            delta=delta,
            sigma=sigma,
            reduction=reduction,
        )
        # ERRATUM: F <- {} is printed inside the loop over the sample, where it would keep the last draw only.
        blocks = ~(rivals.leads <= bar)  # a NaN blocks
        hazard = hazard_of(state, blocks)
        is_tested = state.pulls >= first
        stop = is_tested & (state.hazard + hazard >= state.clock)

        stride = _stride(t, hazard, state.clock - state.hazard, jnp.all(blocks), growth)
        stride = jnp.where(is_tested, stride, first - state.pulls)
        counts = next_counts(design, state, stride, whole_cycles=gram == "limit" and growth is not None)
        # All the tests of the block that is pulled, each at the hazard of the first.
        cumulated = jnp.where(is_tested, hazard * counts.sum().astype(dtype), 0)
        return Decision(Block(counts, cumulated), stop, rivals.answer)

    def observe(state: State, action: Block, observation: Array) -> State:
        return State(
            counts=state.counts + action.counts,
            sums=state.sums + observation,
            pulls=state.pulls + action.counts.sum(),
            hazard=state.hazard + action.hazard,
            clock=state.clock,
        )

    return Algorithm(init, decide, observe, Block(none, jnp.zeros((), dtype)))


@partial(jax.jit, static_argnames=("k", "reduction"), inline=True)
def surrogates(
    inverse: Array,
    theta: Array,
    t: Array | int,
    *,
    support: Array,
    k: int,
    delta: Array | float,
    sigma: Array | float | None = None,
    reduction: Reduction = "paper",
) -> Surrogates:
    """The rivals of the estimated best super-arm M^ that the super-arms of a design lead to.

    Wanted is the largest theta(M) - theta(M^) + C_t |chi_M - chi_M^|. With g = C_t / (2 |chi_Mi - chi_M^|) the last
    term is at most g |chi_M - chi_M^|^2 and a constant, which it equals at M_i. That makes a quadratic form over sets,
    and S_i is what `quadratic_maximization` finds for it. The lead that counts is then that of S_i, with the norm.

    Args:
        inverse: float (n, n), A_t^-1.
        theta: float (n,), the estimate.
        t: () >= 1, pulls.
        support: float (s, n), the super-arms M_i.
        k: as in `sa_foa`.
        delta: as in `sa_foa`.
        sigma: as in `sa_foa`.
        reduction: as in `sa_foa`.

    Returns:
        Surrogates. The largest lead bounds from below what any M may lead by.

    Cost: O(s n^2).
    """
    answer = top_set(theta, k)
    chi = answer.astype(theta.dtype)
    radius = ellipsoid_radius(jnp.asarray(t, theta.dtype), theta.size, k, delta, sigma)
    # In units of g only the diagonals differ, and M_i = M^, where g is infinite, needs no care.
    per_g = 2 * _norms(support - chi, inverse) / radius
    sets = _peel(inverse, per_g[:, None] * theta - 2 * jnp.matmul(inverse, chi, precision="highest"), k, reduction)
    change = sets.astype(theta.dtype) - chi
    leads = dot(change, theta) + radius * _norms(change, inverse)
    return Surrogates(answer, sets, jnp.where(jnp.all(support == chi, axis=1), -jnp.inf, leads), radius)


def lottery_hazard(blocking: Array, *, s: int, samples: int, dtype) -> Array:
    """-log P(a test fails), if it samples rows with replacement and fails when one of them blocks.

    Args:
        blocking: int (), how many of the s rows block.
        s: number of rows.
        samples: sample size, at least 1.
        dtype: of the result.

    Returns:
        float (): 0 if all rows block, infinite if none does.
    """
    log_success = samples * jnp.log1p(-blocking.astype(dtype) / s)
    return -jnp.log1p(-jnp.exp(log_success))


def sampled_rows(clock: Array, pulls: Array, *, s: int, samples: int) -> Array:
    """The rows that `sa_foa(lottery="draw")` samples in the test of a state: a function of the state alone.

    Args:
        clock: float (), of the state; here no more than a random seed.
        pulls: int (), of the state.
        s: number of rows.
        samples: sample size.

    Returns:
        int (samples,), each below s.
    """
    bits = lax.bitcast_convert_type(clock, jnp.dtype(f"int{8 * clock.dtype.itemsize}"))
    return jax.random.randint(jax.random.fold_in(jax.random.key(bits), pulls), (samples,), 0, s)


def _peel(inverse: Array, diagonals: Array, k: int, reduction: Reduction) -> Array:
    """The sets bool (s, n) that `quadratic_maximization` finds for each inverse + Diag(diagonals[i]).

    The graphs share all but their diagonals, so the degrees are all that is carried: (s, n) and never (s, n, n). With
    R_j the sum of inverse_jl over the other vertices left, c_j the diagonal and a the number of vertices left, the
    degree of j is R_j + (a - 2) c_j ("paper") or 2 R_j + (a - 2) c_j / (k - 1) ("exact"), up to what all j share.
    """
    n = inverse.shape[0]
    links = jnp.where(jnp.eye(n, dtype=bool), 0, inverse)
    own = jnp.diagonal(inverse) + diagonals
    own = own if reduction == "paper" else own / (2 * (k - 1))
    vertices = jnp.arange(n)

    def remove(removed: Array, sums: Array) -> Array:
        degrees = sums + (n - 2 - removed).astype(own.dtype) * own
        # The first of the least: two plain minima take a third of the time of an argmin (n = 111, s = 222, one core).
        is_least = degrees <= degrees.min(axis=1, keepdims=True)
        least = jnp.where(is_least, vertices, n - 1).min(axis=1)
        return jnp.where(vertices == least[:, None], jnp.inf, sums - links[least])

    sums = lax.fori_loop(0, n - k, remove, jnp.broadcast_to(links.sum(axis=1), own.shape))
    return jnp.isfinite(sums)


def _stride(t: Array, hazard: Array, left: Array, all_block: Array, growth: Array | float | None) -> Array:
    """Pulls until the next evaluation: as far as the grid goes, and no further than to the test that will stop."""
    if growth is None:
        return jnp.ones((), int)
    growth = jnp.asarray(growth, t.dtype)
    ratio = jnp.where(all_block, jnp.maximum(growth, IDLE_GROWTH), growth)
    grid = jnp.clip(jnp.floor((ratio - 1) * t), 1, float(jnp.iinfo(jnp.result_type(int)).max // 4))
    # Of the tests from here on, each adding `hazard`, the last that fails. 0 / 0 is a test that cannot stop.
    failing = jnp.ceil(left / hazard) - 1
    return jnp.fmin(grid, jnp.maximum(failing, 1)).astype(int)


def _norms(directions: Array, inverse: Array) -> Array:
    return jnp.sqrt(squared_norms(directions, inverse))


def _certain(stops: Array, dtype) -> Array:
    """The hazard of a test whose result is known."""
    return jnp.where(stops, jnp.asarray(jnp.inf, dtype), 0)


def _check(s, epsilon, draws, threshold, mode, reduction, lottery, growth, first_test, gram) -> None:
    require_positive("epsilon", epsilon)
    require(known(draws) >= 1, "draws", "be at least 1", draws)
    require(known(threshold) > 0, "threshold", "be positive", threshold)
    words = {
        "mode": (mode, Mode),
        "reduction": (reduction, Reduction),
        "lottery": (lottery, Lottery),
        "gram": (gram, Gram),
    }
    for name, (word, choices) in words.items():
        require(word in get_args(choices), name, f"be one of {get_args(choices)}", word)
    if growth is not None:
        require((known(growth) > 1) & (known(growth) < jnp.inf), "growth", "be above 1, or None", growth)
    require(lottery == "hazard" or growth is None, "growth", "be None if the lottery is drawn", growth)
    require(first_test is None or known(first_test) >= s, "first_test", f"be at least {s}, one pull each", first_test)
