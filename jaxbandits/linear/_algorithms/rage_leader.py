"""RAGE against one leader, for thousands of items (after Fiez et al., 2019)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.linear._problem.arms import spanning
from jaxbandits.linear._shared.rage_phases import Contest, State, algorithm_from_contest, checked_rage, leader_of
from jaxbandits.numerics.design import frank_wolfe
from jaxbandits.numerics.linalg import dot, gram, spd_inverse


def rage_leader(
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
    """Halves its error from phase to phase, with a design for the leads of the last phase's leader over the others.

    Thousands of items have too many pairs for the design of `rage`. This design is for the leads of the last phase's
    leader, item 0 at first, by steps of Frank and Wolfe. A phase tests its own leader alone. Two others are then apart
    by twice the width, so none with a gap above 2^(2 - t) remains after phase t.

    Arguments, result and errors: as for `rage`, except that the run also stops after the first phase t with
    2^(2 - t) <= epsilon, and that with `reuse` the first phase pulls arms that span R^d.

    **Guarantee**: as for `rage`. **Cost**: O(K d^2 + M d + d^3) per phase, and in `plan` O((K + M) d) for each of
    `design_steps` steps, which suits thousands of items.

    Source: the algorithm of Fiez, Jain, Jamieson and Ratliff (2019); the reduction to a leader is ours.
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
    spanner, M = spanning(arms), items.shape[0]
    least = spanner.astype(int)

    def compared(state: State) -> tuple[Array, Array]:
        leader = leader_of(settings, state)
        return items - items[leader][None], state.items_left & (jnp.arange(M) != leader)

    def designed(directions: Array, weights: Array) -> tuple[Array, Array]:
        # Each arm with a share costs a pull at least; of thousands of arms this solver uses few.
        allocation = frank_wolfe(arms, directions, weights, steps=settings.design_steps, start=spanner)
        images = jnp.matmul(directions, spd_inverse(gram(arms, allocation)), precision="highest")
        return allocation, jnp.max(weights * dot(images, directions))

    contest = Contest(
        least=least, first_gap=2, compared=compared, designed=designed, winners=lambda leader: leader[None]
    )
    return algorithm_from_contest(settings, contest)
