"""An algorithm beside its transcription: either hears what the other was told, and both tapes are compared.

A transcription that has its own rewards writes a tape, and the algorithm hears it (`replayed`). An algorithm that asks
several things a round, or leaps, goes first (`traced`), and the transcription is told what it heard.
"""

from typing import NamedTuple

import jax
import numpy as np
from drivers.programs import compiled

from jaxbandits import Tape, trace
from jaxbandits.testing import replay

KEY = jax.random.key(5)


class Laid(NamedTuple):
    """Two tapes that should be one."""

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
    """What the algorithm `build(*numbers)` does on a tape; equal `build`s and shapes are one program."""
    return jax.device_get(_replay(build, watch)(tape.observations, numbers))


@compiled
def _trace(build, rounds, watch):
    return lambda numbers: trace(KEY, *build(*numbers), rounds=rounds, watch=watch)


def traced(build, rounds, *numbers, watch=None):
    """What the algorithm and environment `build(*numbers)` do; equal `build`s and shapes are one program."""
    return jax.device_get(_trace(build, rounds, watch)(numbers))


def after(values):
    """What holds after each round, as what holds before the next; before the first nothing is known."""
    values = np.stack([np.asarray(value) for value in values])
    masked = np.ma.masked_array(np.concatenate([values[:1], values]))
    masked[0] = np.ma.masked
    return masked


def until_the_end(values):
    """What is done in every round, and nothing in one more."""
    values = np.stack([np.asarray(value) for value in values])
    return np.concatenate([values, np.zeros_like(values[:1])])


def unless(is_open, values):
    """Values of which some are not to be compared: those for which `is_open` (rounds,) holds."""
    values = np.asarray(values)
    at = np.reshape(is_open, (-1,) + (1,) * (values.ndim - 1))
    return np.ma.masked_array(values, mask=np.broadcast_to(at, values.shape))


def only_last(value, rounds):
    """What is known at the end alone."""
    values = np.broadcast_to(value, (rounds, *np.shape(value)))
    return unless(np.arange(rounds) < rounds - 1, values)
