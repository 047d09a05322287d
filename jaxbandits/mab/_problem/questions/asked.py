"""All kinds of questions, and what they have in common."""

from typing import Any, get_args

from jaxbandits import checks
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._problem.questions import above, all_good, best_arm, good_arm, top_m
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._problem.questions.kind import Kind
from jaxbandits.questions import Above, BestArm, TopM

Question = BestArm | TopM | Above | GoodArm | AllGood

KINDS: dict[type, Kind] = {
    BestArm: best_arm.KIND,
    TopM: top_m.KIND,
    Above: above.KIND,
    GoodArm: good_arm.KIND,
    AllGood: all_good.KIND,
}


def kind_of(question: Question) -> Kind:
    """Returns the functions of a question's kind."""
    return KINDS[type(question)]


def check_question(question: Any, problem: Problem, name: str = "question") -> None:
    """Raises `ValueError` unless it is a question that can be asked about the arms of a problem."""
    checks.instance(name, question, get_args(Question))
    kind_of(question).check(question, problem, name)
