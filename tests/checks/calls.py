"""How a valid call of a public function is written down, to be mutated argument by argument."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call that is accepted, and what else is."""

    function: Callable[..., Any]
    arguments: dict[str, Any]  # every argument that it takes, with a valid value
    fine: dict[str, tuple[str, ...]] = {}  # noqa: RUF012  mutations of an argument that make another valid value
