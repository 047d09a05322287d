"""Rewards that an adversary changes, up to a budget."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key, PyTree
from jaxbandits.feedback._wrappers.counted import pulls_of


class Purse(NamedTuple):
    """Memory of an environment with an adversary."""

    left: Array  # float ()   budget that is not spent yet
    spent: Array  # float ()
    inner: PyTree  # memory of the environment


def corrupted(
    environment: Environment, *, budget: Array | float, attack: Callable[[PyTree, PyTree], PyTree]
) -> Environment:
    """Lets an adversary replace observations, while the sum of all changes is within a budget.

    The adversary sees the action and the true observation. A change that the rest of the budget does not pay for is not
    made at all, so that rewards of 0 and 1 stay 0 or 1 where the attack keeps them so.

    Args:
        environment: the environment of the true rewards.
        budget: () >= 0, largest sum of abs(change) over all floating-point entries of all observations, in units of
            reward: C of the literature. Infinity for no limit.
        attack: (action, observation) -> observation that the algorithm shall receive, of the same form. Integer
            entries, such as the pulls in `mab.Rewards`, are left as they are.

    Returns:
        Environment. Results have a column `corruption`, the budget that a run's adversary has spent.

    Raises:
        ValueError: an argument is of the wrong kind, `budget` is negative or no number, or the environment does not say
            how many pulls an action makes.

    Example:
        Successive elimination, sure at delta = 1e-6, answers wrongly after three lies.

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import jaxbandits
        >>> from jaxbandits import feedback, mab
        >>> instance = mab.gaussian((0.5, 0.0), noise_scale=0.1)
        >>> def flip(pull, rewards):
        ...     return rewards._replace(sums=jnp.where(pull.arms == 0, rewards.sums - 3.0, rewards.sums))
        >>> environment = feedback.corrupted(mab.environment(instance), budget=9.0, attack=flip)
        >>> algorithm = mab.successive_elimination(instance.problem, delta=1e-6)
        >>> print(jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**4).answer)
        1

    Source: Lykouris, Mirrokni and Paes Leme (2018), "Stochastic bandits robust to adversarial corruptions", whose
    budget sums the largest change over arms in each round.
    """
    count = pulls_of("environment", environment)
    budget = checks.real("budget", budget, least=0, finite=False)
    checks.function("attack", attack, "(action, observation)")
    available, columns = environment.available, environment.columns

    def init(key: Key) -> Purse:
        return Purse(jnp.asarray(budget, float), jnp.zeros((), float), environment.init(key))

    def respond(memory: Purse, action: PyTree, noise: PyTree) -> tuple[PyTree, Purse]:
        observation, inner = environment.respond(memory.inner, action, noise)
        false = attack(action, observation)
        require_like(false, observation)

        def cost_of(new: Array, old: Array) -> Array:
            return jnp.sum(jnp.abs(new - old)).astype(float) if is_float(old) else jnp.zeros((), float)

        cost = sum(jax.tree.leaves(jax.tree.map(cost_of, false, observation)), jnp.zeros((), float))
        is_made = (cost <= memory.left) & (count(action) > 0)
        paid = jax.tree.map(lambda new, old: jnp.where(is_made, new, old) if is_float(old) else old, false, observation)
        price = jnp.where(is_made, cost, 0)
        return paid, Purse(memory.left - price, memory.spent + price, inner)

    def spent(memory: Purse) -> dict[str, Array]:
        return {"corruption": memory.spent, **({} if columns is None else columns(memory.inner))}

    return environment._replace(
        init=init,
        respond=respond,
        available=None if available is None else lambda memory, action: available(memory.inner, action),
        columns=spent,
    )


def is_float(x: Array) -> bool:
    """True if an entry of an observation holds rewards."""
    return bool(jnp.issubdtype(jnp.result_type(x), jnp.floating))


def require_like(false: PyTree, observation: PyTree) -> None:
    """Raises `ValueError` unless the attack returned an observation of the same form."""
    forms = [jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x)), tree) for tree in (false, observation)]
    same = jax.tree.structure(false) == jax.tree.structure(observation) and forms[0] == forms[1]
    checks.require(same, "attack", f"return an observation like {forms[1]}", forms[0])
