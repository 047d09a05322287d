"""Common random numbers: with a stream, two algorithms receive the same rewards.

In `environment(instance, stream=key)`, the reward of the n-th pull of an arm is a function of (key, arm, n) alone. It
depends on nothing else: not on the algorithm, the round, or the other arms. The environment counts the pulls of each
arm in its memory. What two algorithms have in common cancels from their difference.

In a sweep, `build(task, key)` gets the run's own key, which depends on the root key, the row and the seed alone. Use it
as the stream: sweeps of several algorithms under one root key then have the same rewards, run by run, and
`jaxbandits.compare(a, b, paired=True)` makes use of it. If `key` draws the instance too, fold the stream from it.
"""

import jax

from jaxbandits.base import Array, Key


def key_of(stream: Key, *numbers: Array) -> Key:
    """Returns the key of an arm, or of one of its samples, by folding in each number in turn."""
    for number in numbers:
        stream = jax.random.fold_in(stream, number)
    return stream
