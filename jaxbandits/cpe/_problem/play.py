"""The action of semi-bandit algorithms: a whole decision is played, and every arm in it shows one sample."""

from typing import NamedTuple

from jaxbandits.base import Array


class Play(NamedTuple):
    """One play of a 0/1 decision; its observation is float (K,), a sample of every arm in it and 0 elsewhere."""

    decision: Array  # int32 (K,)   1 for the arms that are played, else 0; all 0: nothing is
    # int32 (K,)   each arm's own 0-based number of its next sample: how often it was sampled before
    index: Array  # pyright: ignore[reportIncompatibleMethodOverride]
