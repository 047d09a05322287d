"""Settings of `duets` and `duets_run` beyond the family's: epochs, inducing points, elimination."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.kernel._problem.settings import Settings, checked
from jaxbandits.numerics.gp import cross, default_jitter, prior_variance

Covariance = Callable[[Array, Array], Array]  # (candidates int (n,), candidates int (m,)) -> float (n, m)
Probability = Callable[[Array, Array], Array]  # (sigma_max^2 (), draws of the epoch float ()) -> probability ()
Elimination = Literal["uniform", "point"]
FIRST_EPOCH = 2
P0 = 10.0


class DuetsSettings(NamedTuple):
    """The checked arguments of `duets`."""

    common: Settings
    covariance: Covariance
    variances: Array  # float (M,)  k(x, x)
    epochs: tuple[int, ...]
    probability: Probability
    is_pointwise: bool
    jitter: Array  # float ()


def duets_settings(
    common: Settings,
    *,
    epochs: int | tuple[int, ...] | None = None,
    inducing_rate: Array | float | Probability = P0,
    elimination: Elimination = "uniform",
    jitter: Array | float | None = None,
) -> DuetsSettings:
    """Checks the arguments of `duets`, of which `common` are those that the family shares."""
    horizon = checks.whole("horizon", common.horizon, least=1)
    if isinstance(epochs, (tuple, list)):
        are_rounds = all(type(rounds) is int and rounds >= 1 for rounds in epochs)
        checks.require(are_rounds and sum(epochs) == horizon, "epochs", f"hold ints >= 1 summing to {horizon}", epochs)
    else:
        checks.require(epochs is None or type(epochs) is int, "epochs", "be an integer or a tuple of integers", epochs)
        epochs = _epoch_lengths("epochs", horizon, epochs)
    if not callable(inducing_rate):
        checks.positive("inducing_rate", inducing_rate)
    checks.one_of("elimination", elimination, Elimination)
    if jitter is not None:
        checks.not_negative("jitter", jitter)
    common = checked(common, beta_per_round=False)
    candidates, kernel, gram, dtype = common.candidates, common.kernel, common.gram, common.candidates.dtype

    def covariance(rows: Array, columns: Array) -> Array:
        if gram is not None:
            return gram.at[rows[:, None], columns].get(mode="clip")
        xs, ys = (candidates.at[index].get(mode="clip") for index in (rows, columns))
        return cross(kernel, xs, ys)

    return DuetsSettings(
        common=common,
        covariance=covariance,
        variances=prior_variance(kernel, candidates),
        epochs=tuple(epochs),
        probability=inducing_rate if callable(inducing_rate) else _proportional(jnp.asarray(inducing_rate, dtype)),
        is_pointwise=elimination == "point",
        jitter=jnp.asarray(default_jitter(dtype) if jitter is None else jitter, dtype),
    )


def thinning_coins(settings: DuetsSettings, seed: Array, epoch: Array, first: Array, rounds: int) -> Array:
    """Returns uniform variables for the draws of an epoch that begins after `first` rounds, float (N, rounds)."""
    horizon, coins = settings.common.horizon, settings.common.coins
    if coins is not None:
        table = jnp.pad(coins.thinning, ((0, 0), (0, horizon)))
        return lax.dynamic_slice_in_dim(table, first, rounds, axis=1)
    # As many for every epoch, so that a draw's does not depend on how the epochs are padded.
    shape = settings.common.n_agents, max(settings.epochs[:-1])
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), epoch)
    return jax.random.uniform(key, shape, settings.variances.dtype)[:, :rounds]


def epoch_lengths(horizon: int, first_epoch: int | None = None) -> tuple[int, ...]:
    """Rounds of each epoch: T_1, then T_{j+1} = floor(sqrt(T T_j)), the last one cut so that they sum to T.

    Args:
        horizon: T.
        first_epoch: T_1, in [1, T]; None: 2, or T if that is less.

    Returns:
        Tuple of ints: (2, 10, 22, 16) for T = 50.

    Raises:
        ValueError: an argument is no integer in its range.

    Source: Pavlovic, Salgia and Zhao (2024), Algorithm 1, whose line 9 would query for T + 1 rounds.
    """
    return _epoch_lengths("first_epoch", checks.whole("horizon", horizon, least=1), first_epoch)


def _epoch_lengths(name: str, horizon: int, first_epoch: int | None) -> tuple[int, ...]:
    """Computes `epoch_lengths`; messages call the first length by `name`."""
    first_epoch = min(FIRST_EPOCH, horizon) if first_epoch is None else first_epoch
    length = checks.whole(name, first_epoch, least=1, most=horizon)
    lengths, remaining = [], horizon
    while remaining > 0:
        lengths.append(min(length, remaining))
        remaining -= lengths[-1]
        length = math.isqrt(horizon * length)
    return tuple(lengths)


def log_rate(c: Array | float) -> Probability:
    """Builds an `inducing_rate` that ignores sigma_max: c log(n) / n for n draws, with c () > 0.

    Raises `ValueError` unless `c` is positive.
    """
    checks.positive("c", c)

    def probability(sigma_max_sq: Array, n_draws: Array) -> Array:
        return jnp.asarray(c, sigma_max_sq.dtype) * jnp.log(n_draws) / n_draws

    return probability


def _proportional(p0: Array) -> Probability:
    """Builds the paper's probability, p0 sigma_max^2."""
    return lambda sigma_max_sq, n_draws: p0 * sigma_max_sq
