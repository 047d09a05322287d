"""A valid call of every public function of `feedback`."""

import numpy as np
from checks.calls import Call

from jaxbandits import feedback, mab

RULE = mab.ucb1(mab.Gaussian(2))
ENVIRONMENT, OTHER = (mab.environment(mab.gaussian(means)) for means in ((1.0, 0.0), (0.0, 1.0)))


def attack(pull, rewards):
    return rewards._replace(sums=rewards.sums - 1)


CALLS = {
    "batched": Call(feedback.batched, {"algorithm": RULE, "size": 5}),
    "changing": Call(feedback.changing, {"environments": (ENVIRONMENT, OTHER), "at": np.array([9])}),
    "corrupted": Call(
        feedback.corrupted, {"environment": ENVIRONMENT, "budget": 3.0, "attack": attack}, fine={"budget": ("inf",)}
    ),
    "delayed": Call(feedback.delayed, {"algorithm": RULE, "environment": ENVIRONMENT, "delay": 4}),
    "delayed, geometric": Call(
        feedback.delayed, {"algorithm": RULE, "environment": ENVIRONMENT, "delay": feedback.Geometric(2.0, 8)}
    ),
    "drifting": Call(feedback.drifting, {"make": lambda pulls: ENVIRONMENT}),
}
