"""Struct of a valid call of a public function, to be mutated argument by argument."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A valid call, and other valid values of its arguments."""

    function: Callable[..., Any]
    arguments: dict[str, Any]  # argument -> valid value, for every argument
    fine: dict[str, tuple[str, ...]] = {}  # noqa: RUF012  argument -> mutations that make another valid value
