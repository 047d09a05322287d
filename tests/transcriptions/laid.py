"""An algorithm beside its transcription: one replays the observations of the other, and both tapes are compared.

A transcription with its own rewards writes a tape, which the algorithm replays (`replayed`). An algorithm that makes
several queries per round, or leaps, runs first (`traced`), and the transcription replays its observations.
"""

from typing import NamedTuple

import jax
import numpy as np
from drivers.programs import compiled

from jaxbandits import Tape, trace
from jaxbandits.testing import replay

KEY = jax.random.key(5)


class Laid(NamedTuple):
    """Two tapes that should be equal."""

    theirs: Tape
    ours: Tape
    tolerance: float = 0.0
    absolute_tolerance: float = 0.0


@compiled
def _replay(build, watch):
    def program(observations, numbers):
        return replay(build(*numbers), Tape((), observations, (), ()), key=KEY, watch=watch)

    return program


def replayed(build, tape, *numbers, watch=None):
    """Replays a tape to the algorithm `build(*numbers)`. Equal `build`s and shapes share a program."""
    return jax.device_get(_replay(build, watch)(tape.observations, numbers))


@compiled
def _trace(build, rounds, watch):
    return lambda numbers: trace(KEY, *build(*numbers), rounds=rounds, watch=watch)


def traced(build, rounds, *numbers, watch=None):
    """Traces the algorithm and environment `build(*numbers)`. Equal `build`s and shapes share a program."""
    return jax.device_get(_trace(build, rounds, watch)(numbers))


def after(values):
    """Shifts values after each round to values before the next; the first is masked."""
    values = np.stack([np.asarray(value) for value in values])
    masked = np.ma.masked_array(np.concatenate([values[:1], values]))
    masked[0] = np.ma.masked
    return masked


def until_the_end(values):
    """Appends a round of zeros to the values of all rounds."""
    values = np.stack([np.asarray(value) for value in values])
    return np.concatenate([values, np.zeros_like(values[:1])])


def unless(is_open, values):
    """Masks the values of rounds for which `is_open` (rounds,) holds, so that they are not compared."""
    values = np.asarray(values)
    at = np.reshape(is_open, (-1,) + (1,) * (values.ndim - 1))
    return np.ma.masked_array(values, mask=np.broadcast_to(at, values.shape))


def only_last(value, rounds):
    """Masks all rounds except the last, which holds `value`."""
    values = np.broadcast_to(value, (rounds, *np.shape(value)))
    return unless(np.arange(rounds) < rounds - 1, values)
