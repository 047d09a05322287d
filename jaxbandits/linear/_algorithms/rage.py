"""RAGE: phases of a fixed design for the remaining items, each twice as precise as the last (Fiez et al., 2019)."""

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array
from jaxbandits.linear._shared.allocations import pair_directions
from jaxbandits.linear._shared.rage_phases import Contest, State, algorithm_from_contest, checked_rage
from jaxbandits.numerics.design import design


def rage(
    arms: Array,
    *,
    delta: Array | float,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    noise_scale: Array | float = 1.0,
    rounding: Array | float = 0.1,
    reuse: bool = False,
    max_pulls: int = 10**9,
    design_steps: int = 1000,
) -> Algorithm:
    """Halves its error from phase to phase, with the best design for the remaining items.

    Phase t = 1, 2, .. pulls by the allocation over all arms that minimises the largest width of two remaining items. It
    makes as many pulls as bring every such width to 2^-t with probability 1 - delta / t^2. An item is then
    eliminated if another leads it by more than their width, so none with a gap above 2^(1 - t) remains. The run stops
    when one item is left.

    Args:
        arms: float (K, d), features of the arms, spanning R^d; the run has their dtype.
        delta: () in (0, 1), allowed probability of error.
        items: float (M, d), features of the items that are compared; the answer is one of them. If None, the arms.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward. The run also stops after the first
            phase t with 2^(1 - t) <= epsilon.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        rounding: () in (0, 1), the share of pulls that a phase adds to make up for rounding the allocation to whole
            pulls. A phase makes at least (1 + 1 / rounding) times as many pulls as the allocation has arms.
        reuse: if False, a phase's test uses the phase's rewards alone. If True, it uses the rewards of all phases, by
            least squares with ridge 1, and the first phase pulls every arm once. That saves pulls, and is heuristic.
        max_pulls: Python int, at least K. A phase that would exceed it is not begun. The run then idles until its
            rounds are spent, and is censored.
        design_steps: iterations of the design's solver, a Python int, at least 1.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (), an item: item 0 before the first phase
        has ended. It is stale after every phase. In its state, `counts` (K,) and `sums` (K,) are exact, and `phase` ()
        is the number of phases that have ended.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: P(the answer is not epsilon-best) <= delta, for noise_scale-sub-Gaussian noise and reuse=False.
    **Cost**: O(K d^2 + M^2 d + d^3) per phase, and in `plan` O((K + M^2) d^2 + d^3) for each of `design_steps` steps,
    which suits hundreds of items; `rage_leader` suits thousands. A gap g takes about log2(1 / g) + 2 phases. float64 is
    advised.

    Source: Fiez, Jain, Jamieson and Ratliff (2019), Sequential experimental design for transductive linear bandits,
    with the constants of its published code; `reuse` is the variant of Tirinzoni and Degenne (2022).
    """
    settings = checked_rage(
        arms,
        items,
        delta=delta,
        epsilon=epsilon,
        noise_scale=noise_scale,
        rounding=rounding,
        reuse=reuse,
        max_pulls=max_pulls,
        design_steps=design_steps,
    )
    arms, items = settings.arms, settings.items
    M = items.shape[0]
    every = jnp.ones(arms.shape[0], bool).astype(int)
    first, second = np.triu_indices(M, 1)
    pairs = pair_directions(items)

    def compared(state: State) -> tuple[Array, Array]:
        return pairs, state.items_left[first] & state.items_left[second]

    def designed(directions: Array, weights: Array) -> tuple[Array, Array]:
        solved = design(arms, directions, weights=weights, steps=settings.design_steps)
        return solved.allocation, solved.value

    contest = Contest(
        least=every, first_gap=1, compared=compared, designed=designed, winners=lambda leader: jnp.arange(M)
    )
    return algorithm_from_contest(settings, contest)
