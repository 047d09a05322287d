"""Arguments of all algorithms of the family, checked in one place, and the coins that draw candidates."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.numerics.gp import Kernel, check_kernel, prior_variance
from jaxbandits.numerics.linalg import check_rank_one


class Coins(NamedTuple):
    """Uniform variables in [0, 1) that replace an algorithm's own: for replays, and for paired comparisons.

    Every agent has its own, so that no two agents share a coin.
    """

    queries: Array  # float (N, T)      which candidate an agent draws in each round
    thinning: Array  # float (N, T)     choice of DUETS' inducing points among these draws
    inducing: Array  # float (T, N, T)  ApproxDisKernelUCB's choice, at a synchronisation after each round


class Settings(NamedTuple):
    """The arguments that the factories of this family share.

    A factory of a single learner takes no `n_agents`, and its horizon counts queries. Both are sizes of arrays in the
    state, so they are Python integers: a study over several horizons is one sweep per horizon, put together by
    `jaxbandits.concatenate`.
    """

    candidates: Array  # float (M, d)     the run has their dtype
    # (x (d,), y (d,)) -> float (), positive semidefinite: `SquaredExponential`, `Matern`, or a function of your own
    kernel: Kernel
    n_agents: int  # N
    horizon: int  # T, rounds with one query per agent
    beta: Any  # float () or (T,) >= 0    width of the index in standard deviations, for all rounds or for each
    # float () > 0   of the Gaussian process; at least 1.2e-4 (float32) or 2.2e-13 (float64) times the largest prior
    # variance k(x, x): below, posteriors lose their digits
    noise_variance: Any
    gram: Array | None = None  # float (M, M)  the kernel of all pairs; if None, computed where it is needed
    coins: Coins | None = None  # replace the algorithm's own randomness


def checked(settings: Settings, *, beta_per_round: bool = True) -> Settings:
    """Checks the settings. Returns them with numbers as arrays of the candidates' dtype.

    With `beta_per_round`, beta may be (T,). Raises `ValueError` unless every argument is as `Settings` says.
    """
    candidates, kernel, n_agents, horizon, beta, noise_variance, gram, coins = settings
    candidates = checks.array("candidates", candidates, ("M", "d"))
    check_kernel(kernel)
    n_agents = checks.whole("n_agents", n_agents, least=1)
    horizon = checks.whole("horizon", horizon, least=1)
    if beta_per_round and (isinstance(beta, (list, tuple)) or getattr(beta, "ndim", 0) > 0):
        beta = checks.array("beta", beta, (horizon,), least=0)
    else:
        checks.not_negative("beta", beta)
    size, dtype = candidates.shape[0], candidates.dtype
    if gram is not None:
        gram = checks.array("gram", gram, (size, size))
    if coins is not None:
        checks.instance("coins", coins, Coins)
        shapes = (n_agents, horizon), (n_agents, horizon), (horizon, n_agents, horizon)
        coins = Coins(
            *(
                checks.array(f"coins.{name}", values, shape, least=0, below=1)
                for name, values, shape in zip(Coins._fields, coins, shapes, strict=True)
            )
        )
    # Last, because it evaluates the kernel.
    check_noise_variance(candidates, kernel, noise_variance, gram)
    beta, noise_variance, gram, coins = jax.tree.map(
        lambda x: jnp.asarray(x, dtype), (beta, noise_variance, gram, coins)
    )
    return Settings(
        candidates=candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        beta=beta,
        noise_variance=noise_variance,
        gram=gram,
        coins=coins,
    )


def check_noise_variance(candidates: Array, kernel: Kernel, noise_variance: Any, gram: Array | None = None) -> None:
    """Raises `ValueError` unless the noise variance is positive, and not too small for rank-one updates."""
    checks.positive("noise_variance", noise_variance)
    variances = prior_variance(kernel, candidates) if gram is None else jnp.diagonal(gram)
    largest = jnp.max(variances)
    check_rank_one("noise_variance", noise_variance, largest, candidates.dtype, "the largest prior variance")


@partial(jax.jit, inline=True)
def picked(coin: Array, size: Array | int) -> Array:
    """Picks an index in 0 .. size - 1 by a uniform variable, int32, shaped as `coin`."""
    size = jnp.asarray(size, jnp.int32)
    return jnp.minimum(jnp.floor(coin * size.astype(coin.dtype)).astype(jnp.int32), size - 1)


def round_coins(settings: Settings, key: Key, t: Array) -> Array:
    """Returns the coins of round `t` (from 0), float (N,): from the settings if given, otherwise from the key."""
    if settings.coins is None:
        return jax.random.uniform(key, (settings.n_agents,), settings.candidates.dtype)
    return settings.coins.queries[:, jnp.minimum(t, settings.horizon - 1)]
