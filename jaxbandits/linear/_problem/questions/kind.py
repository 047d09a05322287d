"""The functions by which the rest of the family knows a kind of question beside the best arm.

Every alternative is a half-space of theta, {theta: y.theta <= c}, with a direction y that is a sum or difference of
items. So the likelihood ratio of the answer against it is (y.theta_hat - c)^2 / (2 noise_scale^2 ||y||^2_{A^-1}).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Array


class Kind(NamedTuple):
    """Functions of a kind of question about M items, with P alternatives to an answer. Answers are bool (M,)."""

    check: Callable[[Any, int, str], None]  # (question, M, name): raises `ValueError` unless its parts fit
    answer: Callable[[Any, Array], Array]  # (question, means (M,)) -> answer at these means
    # (question, answer, points (M, n)) -> (P, n): the directions y of the items, or the images A^-1 y of their images
    directions: Callable[[Any, Array, Array], Array]
    offsets: Callable[[Any, Array, Any], Array]  # (question, answer, dtype) -> c, float (P,) or ()
    exists: Callable[[Any, Array], Array]  # (question, items) -> bool (P,), the alternatives that some theta satisfies
    is_right: Callable[..., Array]  # (question, items, theta, answer, epsilon) -> bool ()
