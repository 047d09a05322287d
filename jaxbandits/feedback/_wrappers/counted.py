"""Environments that say how many pulls an action makes, and algorithms that take late observations."""

from collections.abc import Callable

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, PyTree


def pulls_of(name: str, environment: Environment) -> Callable[[PyTree], Array]:
    """Returns the function that counts the pulls of an action; raises `ValueError` if the environment has none."""
    checks.instance(name, environment, Environment)
    if environment.pulls is None:
        raise ValueError(
            f"{name} must say how many pulls an action makes, in its field pulls, got None. Use "
            "environment._replace(pulls=lambda action: ..), which returns 0 for the idle action"
        )
    return environment.pulls


def require_any_order(algorithm: Algorithm) -> None:
    """Raises `ValueError` if an algorithm must observe each action before it decides again."""
    checks.instance("algorithm", algorithm, Algorithm)
    if algorithm.needs_order:
        raise ValueError(
            "algorithm must take observations that come after other decisions, got one with needs_order: its observe "
            "reads what only the state that made the decision holds"
        )
