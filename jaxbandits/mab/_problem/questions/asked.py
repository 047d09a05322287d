"""All kinds of questions, and what they have in common."""

from typing import Any, get_args

from jaxbandits import checks
from jaxbandits.checks import is_concrete, require
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._problem.questions import above, all_good, best_arm, good_arm, top_m
from jaxbandits.mab._problem.questions.above import Above
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._problem.questions.best_arm import BestArm
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._problem.questions.kind import Kind
from jaxbandits.mab._problem.questions.top_m import TopM

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


def require_no_epsilon(epsilon: Any) -> None:
    """Raises `ValueError` unless an epsilon beside a question is 0."""
    checks.not_negative("epsilon", epsilon)
    is_zero = is_concrete(epsilon) and epsilon == 0
    require(is_zero, "epsilon", "be 0 with a question", epsilon, advice="Write BestArm(epsilon)")
