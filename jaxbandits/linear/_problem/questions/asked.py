"""All kinds of questions, and what they have in common."""

from typing import Any, NamedTuple, get_args

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._problem.questions import above, top_m
from jaxbandits.linear._problem.questions.kind import Kind
from jaxbandits.questions import Above, BestArm, TopM, require_no_epsilon

Question = BestArm | TopM | Above

KINDS: dict[type, Kind] = {TopM: top_m.KIND, Above: above.KIND}


class Asked(NamedTuple):
    """A question, with the best arm by itself."""

    question: TopM | Above | None  # None for the best arm
    epsilon: Array | float  # () >= 0, allowed suboptimality of the best arm, in units of reward


def asked(question: Any, items: int, epsilon: Array | float = 0.0, *, name: str = "epsilon") -> Asked:
    """Checks a question.

    Args:
        question: the question. If None, the best arm.
        items: number of items.
        epsilon: an epsilon that is given beside it; with a question it must be 0.
        name: name of this epsilon, for the message.

    Returns:
        Asked.

    Raises:
        ValueError: it is no question, a part of it is out of range, or there is an epsilon beside it.
    """
    if question is None:
        return Asked(None, epsilon)
    checks.instance("question", question, get_args(Question))
    require_no_epsilon(epsilon, name)
    if isinstance(question, BestArm):
        checks.not_negative("question.epsilon", question.epsilon)
        return Asked(None, question.epsilon)
    kind_of(question).check(question, items, "question")
    return Asked(question, 0.0)


def kind_of(question: TopM | Above) -> Kind:
    """Returns the functions of a question's kind."""
    return KINDS[type(question)]
