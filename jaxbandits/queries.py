"""The form of the queries that an environment answers: the algorithm that makes them says it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxbandits.base import Algorithm, PyTree


class Form(NamedTuple):
    """Form of an algorithm's queries."""

    action: PyTree  # an action of this form, which does nothing
    problem: Mapping[str, Any]  # the problem that the algorithm was made for, by name; empty if it declares none


def form_of(algorithm: Algorithm | PyTree | None, plain: PyTree) -> Form:
    """Returns the form of an algorithm's queries.

    Args:
        algorithm: the algorithm, or an action of its form. If None, `plain` is the action.
        plain: the family's plain action, which does nothing.
    """
    if isinstance(algorithm, Algorithm):
        return Form(algorithm.idle, {} if algorithm.problem is None else algorithm.problem())
    return Form(plain if algorithm is None else algorithm, {})
