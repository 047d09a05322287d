"""Rules of this library and the same as its user would write them, for the bench `baseline`.

The instances have so small a lead, or delta is so small, that no run stops: the figures are costs of a round.
"""

from experiments.bench.rivals import families, mab
from experiments.bench.rivals.rival import Rival


def rivals() -> list[Rival]:
    """Returns a rule of every family, and the simplest ones."""
    return [*mab.rivals(), *families.rivals()]
