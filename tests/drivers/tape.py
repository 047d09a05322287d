"""Driver of any algorithm by recorded observations instead of an environment."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.engine.run.loop import ask

KEY = jax.random.key(0)


def _usual(r, state):
    return KEY


def one_round(algorithm, answer, state, key=KEY):
    """Returns the next state, and the state and the decision that led to it. A state that stops does not change."""
    state, decision = ask(algorithm, key, state)
    action = jax.tree.map(partial(jnp.where, decision.stop), algorithm.idle, decision.action)
    return algorithm.observe(state, action, answer(state, action)), state, decision._replace(action=action)


def record(algorithm, answer, rounds, *, start=KEY, key=_usual):
    """Returns the last state, and the stacked states and decisions of all rounds. Call it under `jit`.

    `answer(state, action)` is the observation, and `key(r, state)` the key of round r.
    """

    def body(state, r):
        state, *before = one_round(algorithm, answer, state, key(r, state))
        return state, tuple(before)

    return lax.scan(body, algorithm.init(start), jnp.arange(rounds))


def finish(algorithm, answer, max_rounds, *, hold=lambda state: state):
    """Returns the stopping or last state, the number of rounds, and the last decision; `hold` changes each state."""

    def more(carry):
        _, rounds, decision = carry
        return ~decision.stop & (rounds < max_rounds)

    def body(carry):
        state, rounds, _ = carry
        state, _, decision = one_round(algorithm, answer, state)
        return hold(state), rounds + 1 - decision.stop.astype(int), decision

    start = algorithm.init(KEY)
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(algorithm.decide, KEY, start))
    return lax.while_loop(more, body, (start, jnp.zeros((), int), none))
