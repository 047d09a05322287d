"""A valid call of every public function of `rare`."""

import jax
import numpy as np
from checks.calls import Call

from jaxbandits import mab, rare

INSTANCE = mab.gaussian((0.5, 0.0))


def build(instance, key):
    algorithm = mab.successive_rejects(instance.problem, horizon=20)
    return algorithm, mab.environment(instance, algorithm)


SETTINGS = {
    "build": build,
    "instance": INSTANCE,
    "key": jax.random.key(0),
    "relative_error": 0.5,
    "most_runs": 64,
    "rounds": (32,),
    "learnings": 2,
    "alternatives": np.array([[0.2, 0.3]]),
    "given": None,
    "store": None,
}
# A store may be any new folder.
FINE = {"alternatives": ("none",), "given": ("none",), "store": ("none", "string", "number")}


def is_one(answer):
    return answer == 1


CALLS = {
    "error_probability": Call(
        rare.error_probability,
        SETTINGS | {"max_rounds": 50, "wrong": is_one},
        fine=FINE | {"wrong": ("none",)},
    ),
    "tail_probability": Call(rare.tail_probability, SETTINGS | {"pulls": 10}, fine=FINE),
    "splitting": Call(
        rare.splitting,
        {
            "build": build,
            "instance": INSTANCE,
            "key": jax.random.key(0),
            "times": (5, 10),
            "level": None,
            "levels": None,
            "max_rounds": None,
            "wrong": None,
            "lanes": 5,
            "replications": 2,
        },
        # The user's own `build` judges an instance.
        fine=dict.fromkeys(("level", "levels", "max_rounds", "wrong"), ("none",))
        | {"instance": ("none", "string", "number", "list", "nan_inside")},
    ),
}
