"""Mixtures of instances: draws of instances, and the likelihood ratio of a run under the whole mixture."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Key
from jaxbandits.checks import require
from jaxbandits.rare._methods import laws, linear, phases
from jaxbandits.rare._methods.laws import Arms, Table
from jaxbandits.rare._methods.linear import Linear, Normals
from jaxbandits.rare._methods.phases import Phased

WIDTH = 0.6  # standard deviation, in octaves, of the scales that a stratum gives an arm


class Move(NamedTuple):
    """Probabilities that an arm's mean moves, and by how much."""

    down: float  # probability of a smaller mean
    up: float  # probability of a larger mean
    scale: float  # typical size of the move, in the units of the kind


class Strata(NamedTuple):
    """Components in which every arm draws its law from one dictionary, independently."""

    table: Table  # float64 (A, K)   the dictionary; entry 0 is the truth
    weights: np.ndarray  # float64 (B, A, K)   probabilities of the entries, summing to 1 over A


class Mixture(NamedTuple):
    """A mixture of instances, from which runs are drawn, with the likelihood ratio of a run under it.

    The first components are broad strata, the others were learnt or given. It lives on the host, in 64 bit.

    Example:
        >>> from jaxbandits import mab, rare
        >>> def build(instance, key):
        ...     algorithm = mab.successive_rejects(instance.problem, horizon=40)
        ...     return algorithm, mab.environment(instance, algorithm)
        >>> instance, settings = mab.gaussian((0.5, 0.0)), {"max_rounds": 100, "rounds": (256, 256), "progress": False}
        >>> result = rare.error_probability(build, instance, key=jax.random.key(0), **settings)
        >>> print(result.mixture.draw(jax.random.key(1), 3).shape)
        (3, 2)
        >>> print(abs(result.mixture.log_ratio([[0, 0]], [[0.0, 0.0]])) < 1e-9)  # nothing was pulled
        [ True]
    """

    truth: Arms | Linear  # law of the rewards
    shares: np.ndarray  # float64 (C,)   probabilities of the components: strata first, then `components`
    components: Table | Normals | Phased  # J components
    strata: Strata | None = None  # C - J broad components

    @property
    def is_phased(self) -> bool:
        """True if an arm's first pulls may have another mean than its later ones."""
        return isinstance(self.components, Phased)

    def draw(self, key: Key, n: int) -> np.ndarray:
        """Draws instances, by systematic sampling of the components.

        Args:
            key: the key.
            n: number of draws, at least 1.

        Returns:
            float64 (n, K), the means of the arms, or (n, d), theta. If means change (`is_phased`), (n, 2 K + 1): means
            of later pulls, means of first pulls, and which length of `phases` they have, 0 for none.

        Raises:
            ValueError: `key` is no key, or `n` is below 1.
        """
        checks.key("key", key)
        checks.whole("n", n, least=1)
        random = generator(key)
        ends = np.cumsum(self.shares / self.shares.sum())
        ends[-1] = 1.0
        numbers = np.diff(np.floor(n * ends + random.uniform()), prepend=0.0).astype(int)
        component = np.repeat(np.arange(numbers.size), numbers)[:n]
        # Rounding of the last end may leave one draw over.
        component = np.concatenate([component, np.full(n - component.size, numbers.size - 1)])
        broad = 0 if self.strata is None else self.strata.weights.shape[0]
        if isinstance(self.truth, Linear):
            assert isinstance(self.components, Normals)
            return linear.draw(self.truth, Normals(*(field[component] for field in self.components)), random)
        parameters = []
        if self.strata is not None:
            chosen = self.strata.weights[component[component < broad]]
            # The index of the first cumulated weight above a uniform number, for each run and arm.
            level = random.uniform(size=(chosen.shape[0], 1, chosen.shape[2]))
            entry = np.minimum((np.cumsum(chosen, axis=1) <= level).sum(axis=1), chosen.shape[1] - 1)
            parameters.append([np.take_along_axis(field, entry, axis=0) for field in self.strata.table])
        learnt = component[component >= broad] - broad
        if isinstance(self.components, Phased):
            of_strata = [phases.constant(Table(*each)) for each in parameters]
            chosen = jax.tree.map(lambda field: field[learnt], self.components)
            return phases.draw(self.truth, phases.joined([*of_strata, chosen]), random)
        parameters.append([field[learnt] for field in self.components])
        return laws.draw(self.truth, Table(*(np.concatenate(pair) for pair in zip(*parameters, strict=True))), random)

    def log_components(self, counts: Any, sums: Any) -> np.ndarray:
        """Computes the log likelihood ratio of every run under every component.

        Args:
            counts: (n, K), pulls of each arm at the end of a run; with phases (n, J + 1, K), see `phases`.
            sums: as `counts`, sums of their rewards, in units of reward.

        Returns:
            float64 (n, C).

        Raises:
            ValueError: the shapes are others.
        """
        N, S = np.asarray(counts, np.float64), np.asarray(sums, np.float64)
        K = self.truth.features.shape[0] if isinstance(self.truth, Linear) else self.truth.means.size
        shape = (len(phases.LENGTHS) + 1, K) if self.is_phased else (K,)
        for name, value in (("counts", N), ("sums", S)):
            is_right = value.ndim == 1 + len(shape) and value.shape[1:] == shape
            require(is_right, name, f"have shape (n, {', '.join(map(str, shape))})", value.shape)
        checks.one_size(counts=(N.shape[0], N), sums=(S.shape[0], S))
        if isinstance(self.truth, Linear):
            assert isinstance(self.components, Normals)
            return linear.log_ratio(self.truth, self.components, N, S)
        if isinstance(self.components, Phased):
            parts = [] if self.strata is None else [_log_strata(self.truth, self.strata, N[:, 0], S[:, 0])]
            return np.concatenate([*parts, phases.log_ratio(self.truth, self.components, N, S)], axis=1)
        parts = [] if self.strata is None else [_log_strata(self.truth, self.strata, N, S)]
        learnt = np.zeros((N.shape[0], self.components.first.shape[0]))
        for k in range(K):
            arm = self.truth._replace(means=self.truth.means[k])
            table = Table(self.components.first[:, k], self.components.second[:, k])
            learnt += laws.log_ratio(arm, table, N[:, k, None], S[:, k, None])
        return np.concatenate([*parts, learnt], axis=1)

    def log_ratio(self, counts: Any, sums: Any) -> np.ndarray:
        """Computes the log likelihood ratio of every run under the mixture, with respect to the true instance.

        Args:
            counts: as for `log_components`.
            sums: as for `log_components`.

        Returns:
            float64 (n,), 0 for a run without pulls.

        Raises:
            ValueError: the shapes are others.
        """
        return log_mean(self.log_components(counts, sums), self.shares)


def together(mixtures: Sequence[Mixture]) -> Mixture:
    """Returns the mixture that draws from each of several mixtures of one instance with equal probability."""
    if len(mixtures) == 1:
        return mixtures[0]
    sizes = [0 if each.strata is None else each.strata.weights.shape[0] for each in mixtures]
    shares = [each.shares / each.shares.sum() / len(mixtures) for each in mixtures]
    broad = [share[:size] for share, size in zip(shares, sizes, strict=True)]
    learnt = [share[size:] for share, size in zip(shares, sizes, strict=True)]
    weights = [each.strata.weights for each in mixtures if each.strata is not None]
    strata = next((each.strata for each in mixtures if each.strata is not None), None)
    if strata is not None:
        if all(np.array_equal(each, weights[0]) for each in weights):
            broad = [np.sum([share for share in broad if share.size], axis=0)]
        else:
            strata = strata._replace(weights=np.concatenate(weights))
    components = jax.tree.map(lambda *fields: np.concatenate(fields), *(each.components for each in mixtures))
    return mixtures[0]._replace(shares=np.concatenate([*broad, *learnt]), components=components, strata=strata)


def alike(mixtures: tuple[Mixture, ...]) -> tuple[Mixture, ...]:
    """Returns the mixtures as they are; if means change in one of them, all with components of that kind."""
    if not any(each.is_phased for each in mixtures):
        return mixtures
    return tuple(
        each._replace(components=phases.constant(each.components)) if isinstance(each.components, Table) else each
        for each in mixtures
    )


def in_phases(first: Mixture, best: int) -> Mixture:
    """Returns a broad mixture of strata with broad components whose means change: half of it, and a tenth the truth."""
    assert isinstance(first.truth, Arms)
    broad = phases.broad(first.truth, best)
    J = broad.numbers.size - 1
    shares = np.concatenate([0.5 * first.shares / first.shares.sum(), [0.1], np.full(J, 0.4 / J)])
    return first._replace(shares=shares, components=broad)


def log_mean(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Computes log sum_i shares_i exp(values_i) over the last axis."""
    with np.errstate(divide="ignore"):
        terms = values + np.log(shares)
    top = terms.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0]


def generator(key: Key) -> np.random.Generator:
    """Returns a NumPy generator that is a function of a JAX key."""
    data = jax.random.key_data(key) if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    return np.random.default_rng(np.asarray(data).ravel().tolist())


def strata_of(arms: Arms, moves: list[list[Move]]) -> Strata:
    """Builds strata from the moves of each arm: one list of K moves for each stratum."""
    table, signed = laws.dictionary(arms)
    scales = np.abs(signed)

    def of_arm(move: Move) -> np.ndarray:
        octaves = np.log2(scales) - np.log2(np.maximum(move.scale, scales.min() / 4))
        shape = np.exp(-((octaves / WIDTH) ** 2) / 2)
        down, up = shape * (signed < 0), shape * (signed > 0)
        moved = move.down * down / down.sum() + move.up * up / up.sum()
        return np.concatenate([[1 - move.down - move.up], moved])

    known: dict[Move, np.ndarray] = {}
    rows = [[known.setdefault(move, of_arm(move)) for move in row] for row in moves]
    return Strata(table, np.swapaxes(np.array(rows), 1, 2))


def one_best(arms: Arms, best: int) -> Strata:
    """Builds the broad strata for the question of the best arm.

    For every wrong answer and scale there are five kinds: the best arm alone is too low; it and the answer; all arms;
    the answer alone is too high; and the answer above all others at once, as in a stop after one pull of each arm.
    """
    K = arms.means.size
    _, signed = laws.dictionary(arms)
    moves = []
    for j in (arm for arm in range(K) if arm != best):
        for g in np.unique(np.abs(signed)):
            shallow = g / max(K - 1, 1)
            for of_best, of_answer, of_others in (
                (Move(0.93, 0.02, g), Move(0.02, 0.08, g), Move(0.10, 0.05, g)),
                (Move(0.93, 0.02, g), Move(0.02, 0.93, g), Move(0.10, 0.05, g)),
                (Move(0.93, 0.02, g), Move(0.02, 0.93, g), Move(0.90, 0.05, g)),
                (Move(0.08, 0.02, g), Move(0.02, 0.93, g), Move(0.10, 0.05, g)),
                (Move(0.85, 0.05, shallow), Move(0.02, 0.93, g), Move(0.85, 0.05, shallow)),
            ):
                moves.append([of_best if a == best else of_answer if a == j else of_others for a in range(K)])
    return strata_of(arms, moves)


def exchanges(arms: Arms, members: np.ndarray) -> Strata:
    """Builds the broad strata for a set of arms, bool (K,): an arm of it falls, another rises, alone or together."""
    K = arms.means.size
    _, signed = laws.dictionary(arms)
    moves = []
    for g in np.unique(np.abs(signed)):
        idle_in, idle_out = Move(0.10, 0.05, g), Move(0.05, 0.10, g)
        base = [idle_in if member else idle_out for member in members]
        moves.append([Move(0.6, 0.05, g) if member else Move(0.05, 0.6, g) for member in members])
        for a in range(K):
            moves.append([*base[:a], Move(0.93, 0.02, g) if members[a] else Move(0.02, 0.93, g), *base[a + 1 :]])
        for i in np.flatnonzero(members):
            for j in np.flatnonzero(~members):
                row = list(base)
                row[i], row[j] = Move(0.93, 0.02, g), Move(0.02, 0.93, g)
                moves.append(row)
    return strata_of(arms, moves)


def _log_strata(arms: Arms, strata: Strata, N: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Computes the log ratio of every run under every stratum: a matrix product per arm, float64 (n, B)."""
    total = np.zeros((N.shape[0], strata.weights.shape[0]))
    for k in range(arms.means.size):
        arm = arms._replace(means=arms.means[k])
        table = Table(strata.table.first[:, k], strata.table.second[:, k])
        values = laws.log_ratio(arm, table, N[:, k, None], S[:, k, None])
        top = values.max(axis=1, keepdims=True)
        # The truth has a positive weight in every stratum, so no sum is 0 unless it is far below the top.
        with np.errstate(divide="ignore"):
            total += np.log(np.exp(values - top) @ strata.weights[:, :, k].T) + top
    return total
