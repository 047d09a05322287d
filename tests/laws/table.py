"""The symmetries of the contract's cases: how what a learner is shown, its actions, rewards and answers transform."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import fullbandit, kernel


class Law(NamedTuple):
    """A change of an instance after which the changed learner makes the changed run."""

    shown: Callable[[Any], Any] | None = None  # view of the changed learner; if None, the same
    factors: dict[str, float] = {}  # noqa: RUF012  hyperparameter -> its factor
    action: Callable[[Any], Any] = lambda action: action  # the changed learner's action, as one of the first instance
    # (action, observation) -> the changed learner's observation
    observation: Callable[[Any, Any], Any] = lambda action, observation: observation
    answer: Callable[[Any], Any] = lambda answer: answer  # the first learner's answer, as the changed one
    counts: Callable[[Any], Any] = lambda counts: counts  # the first learner's `counts`, as the changed one's
    settings: dict[str, Any] = {}  # noqa: RUF012  hyperparameters of both learners
    changed: dict[str, Any] = {}  # noqa: RUF012  hyperparameters of the changed learner alone
    # True if both observe their rewards without noise. The first pulls are in the order of the arms, whatever that is.
    is_quiet: bool = False


UNIT = 4.0  # a power of two: rounding is the same
SHIFT = 2.0
ORDER = np.array([2, 0, 1])  # old arm of each new one
RANK = np.argsort(ORDER)


def renamed(action: Any) -> Any:
    """Returns an action of the permuted arms with the arms' old numbers."""
    if hasattr(action, "arms"):
        return action._replace(arms=jnp.asarray(ORDER, action.arms.dtype)[action.arms])
    if hasattr(action, "arm"):
        return action._replace(arm=jnp.asarray(ORDER, action.arm.dtype)[action.arm])
    return type(action)(*(x[RANK] for x in action))


def permuted(shown: Callable[[Any], Any]) -> Law:
    """Permutes three arms."""
    return Law(
        shown=shown,
        action=renamed,
        observation=lambda action, observation: observation[ORDER] if hasattr(action, "counts") else observation,
        answer=lambda answer: RANK[answer],
        counts=lambda counts: counts[ORDER],
        is_quiet=True,
    )


def in_units(**factors: float) -> Law:
    """Gives rewards another unit, and hyperparameters theirs: `noise_scale` the unit, others a power of it."""
    powers = {"noise_scale": 1, "epsilon": 1} | factors
    return Law(
        factors={name: UNIT**power for name, power in powers.items()},
        observation=lambda action, observation: UNIT * observation,
    )


# linear

ANGLE = 0.7
ROTATION = np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]])
# An isometry of the plane into space, which the arms do not span; rules with a ridge do not mind.
EMBEDDING = ROTATION @ np.linalg.qr(np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]))[0].T
LINEAR = {
    "rotated": Law(shown=lambda arms: arms @ ROTATION),
    "permuted": permuted(lambda arms: arms[ORDER]),
    "rewards": in_units(norm_bound=1, leap_noise_scale=1, bridge_noise_scale=1),
    "features": Law(shown=lambda arms: UNIT * arms, factors={"ridge": UNIT**2, "norm_bound": 1 / UNIT}),
    "embedded": Law(shown=lambda arms: arms @ EMBEDDING),
}
# Rules with fixed shares, which are permuted too.
SHARES = np.array([0.413, 0.376, 0.211])
LINEAR["permuted-set"] = LINEAR["permuted"]._replace(answer=lambda answer: answer[ORDER])
LINEAR["rewards-level"] = in_units(level=1)
LINEAR["permuted-shares"] = LINEAR["permuted"]._replace(changed={"allocation": tuple(SHARES[ORDER])})

# mab


def shift(times: Any, sums: Any) -> Any:
    """Returns what a constant added to every reward adds to its sums."""
    return SHIFT * times.astype(sums.dtype)


MAB = {
    "shifted": Law(
        observation=lambda action, rewards: rewards._replace(sums=rewards.sums + shift(rewards.times, rewards.sums))
    ),
    "rewards": Law(
        shown=lambda problem: problem._replace(noise_scale=UNIT * problem.noise_scale),
        factors={"epsilon": UNIT, "hardness": UNIT**-2, "threshold": UNIT, "level": UNIT},
        observation=lambda action, rewards: rewards._replace(sums=UNIT * rewards.sums),
    ),
    "permuted": permuted(lambda problem: problem),
    # Divergences of exponential arms depend on the ratio of their means alone, and unknown variances are in no unit.
    "units": Law(observation=lambda action, rewards: rewards._replace(sums=UNIT * rewards.sums)),
}
MAB["permuted-set"] = MAB["permuted"]._replace(answer=lambda answer: answer[ORDER])
MAB["shifted-level"] = MAB["shifted"]._replace(changed={"level": 0.3 + SHIFT})

# kernel

TURN = np.array([[0.6, 0.8], [-0.8, 0.6]])
KERNEL = {
    "rotated": Law(shown=lambda candidates: candidates @ TURN),
    "rewards": Law(
        factors={"noise_variance": UNIT**2, "inducing_rate": UNIT**-2, "jitter": UNIT**2},
        changed={"kernel": lambda x, y: UNIT**2 * kernel.SquaredExponential(0.2)(x, y)},
        observation=lambda action, rewards: UNIT * rewards,
    ),
}

# kcenter

REWARDS = in_units()._replace(changed={"noise_scale": 0.1 * UNIT})
# Posterior draws depend on a prior, which has a unit.
KCENTER = {"rewards": REWARDS, "no-draws": REWARDS._replace(settings={"mix": 0.0})}

# fullbandit

ARMS = np.array([3, 0, 5, 1, 4, 2])
FULLBANDIT = {
    "permuted": Law(
        shown=lambda design: fullbandit.make_design(
            np.asarray(design.support)[:, ARMS], design.k, dtype=design.support.dtype
        ),
        answer=lambda answer: answer[ARMS],
    ),
    "shifted": Law(observation=lambda action, sums: sums + 3 * shift(action.counts, sums)),
    "rewards": in_units(pull_variance=2),
}
FULLBANDIT["permuted-limit"] = FULLBANDIT["permuted"]._replace(settings={"design_matrix": "limit"})

# cpe: plays of Gaussian arms, of decisions of one size

CPE = {
    "shifted": Law(observation=lambda play, samples: samples + shift(play.decision, samples)),
    "rewards": in_units(),
}


def both(first: Law, second: Law) -> Law:
    """Changes an instance by one law and then by another, of one first run, so that two laws cost one program."""
    for law in (first, second):
        assert not law.is_quiet
        assert not law.settings
    names = first.factors.keys() | second.factors.keys()
    scaled = {name: value * second.factors[name] for name, value in first.changed.items() if name in second.factors}

    def shown(view: Any) -> Any:
        for law in (first, second):
            view = view if law.shown is None else law.shown(view)
        return view

    return Law(
        shown=None if first.shown is None and second.shown is None else shown,
        factors={name: first.factors.get(name, 1) * second.factors.get(name, 1) for name in names - scaled.keys()},
        action=lambda action: first.action(second.action(action)),
        observation=lambda action, observation: second.observation(
            action, first.observation(second.action(action), observation)
        ),
        answer=lambda answer: second.answer(first.answer(answer)),
        counts=lambda counts: second.counts(first.counts(counts)),
        changed=first.changed | second.changed | scaled,
    )


def laws_of(family: dict[str, Law], laws: str, cases: str) -> list[tuple[str, str, Law]]:
    """Gives each of the cases each of the laws of its family, named in one string. Laws joined by "+" are one."""
    changes = {law: functools.reduce(both, [family[one] for one in law.split("+")]) for law in laws.split()}
    return [(case, law, change) for case in cases.split() for law, change in changes.items()]


# Missing are laws that a rule keeps in law alone, or up to rounding: draws of theta depend on the coordinates, rules
# that visit the arms in turn on their order, and designs come from a solver. FWS for the top arms adds gradients in the
# order of the arms, and with JAX 0.12 stops a pull later when they are permuted.
ROWS = [
    *laws_of(LINEAR, "rotated+features+rewards", "lingape lingape-ratio lingape-leap lingape-threshold xy-static"),
    *laws_of(LINEAR, "rotated+features+rewards", "linear-uniform fixed-weights fws lingame lingame-c"),
    *laws_of(LINEAR, "rotated+features+rewards", "lazy-tas lin-ucb g-bai od-linbai"),
    *laws_of(LINEAR, "rotated+features", "xy-static-exact p1-rage"),
    *laws_of(LINEAR, "features+rewards", "xy-adaptive l-t3c l-t3c-coin lin-ttts lin-ts peps peace"),
    *laws_of(LINEAR, "features", "rage rage-leader"),
    *laws_of(LINEAR, "permuted", "lingape lingape-leap lingape-threshold xy-adaptive rage fws lingame lazy-tas l-t3c"),
    *laws_of(LINEAR, "permuted", "lin-ttts lin-ts lin-ucb od-linbai peace"),
    *laws_of(LINEAR, "permuted-shares", "xy-static xy-static-exact fixed-weights"),
    *laws_of(LINEAR, "embedded", "lingape lingape-ratio lingape-leap lin-ucb"),
    *laws_of(LINEAR, "rotated+features+rewards", "lingape-top fws-top lingame-top lazy-tas-top"),
    *laws_of(LINEAR, "rotated+features+rewards-level", "lingape-above fws-above"),
    *laws_of(LINEAR, "permuted-set", "lingape-top"),
    *laws_of(MAB, "shifted+rewards", "mab-uniform eb-tc t3c ttts ttucb tas lucb ugape lil-ucb successive-elimination"),
    *laws_of(MAB, "shifted+rewards", "successive-rejects continuous-rejects ucb-e ucb1 thompson moss moss-anytime"),
    *laws_of(MAB, "shifted+rewards", "bayes-ucb discounted-ucb sliding-window-ucb m-ucb batched-elimination"),
    *laws_of(MAB, "permuted", "eb-tc t3c ttucb tas lucb successive-elimination successive-rejects ucb-e ucb1 moss"),
    *laws_of(MAB, "shifted-level+rewards", "apt lsa hdoc lucb-g apt-g apgai tas-good tas-sticky"),
    *laws_of(MAB, "shifted+rewards", "sar st2"),
    *laws_of(MAB, "permuted-set", "st2"),
    *laws_of(MAB, "units", "kl-lucb-exponential eb-tci-variances tas-variances"),
    *laws_of(MAB, "shifted", "eb-tci-variances tas-variances"),
    *laws_of(MAB, "permuted", "moss-anytime lil-ucb bayes-ucb batched-elimination"),
    *laws_of(KERNEL, "rotated+rewards", "duets dis-kernel-ucb approx-dis-kernel-ucb n-kernel-ucb gp-ucb bpe"),
    *laws_of(KCENTER, "rewards", "ns-random ns-tands track-and-stop"),
    *laws_of(KCENTER, "no-draws", "ns-ts"),
    *laws_of(FULLBANDIT, "permuted+shifted+rewards", "saqm icb exhaustive spectral sa-foa"),
    *laws_of(FULLBANDIT, "permuted-limit", "saqm icb exhaustive spectral"),
    *laws_of(CPE, "shifted+rewards", "pfws combgame semi-clucb round-robin cucb cts"),
]
LAWS = {f"{case}, {law}": (case, changes) for case, law, changes in ROWS}
# Laws that are always tested; the others belong to the wide tests.
ALWAYS = {
    *("lingape, rotated+features+rewards", "lingape, permuted", "lingape, embedded", "lin-ucb, permuted"),
    *("xy-static, rotated+features+rewards", "xy-static, permuted-shares", "eb-tc, shifted+rewards", "eb-tc, permuted"),
    *("dis-kernel-ucb, rotated+rewards", "ns-tands, rewards", "ns-ts, no-draws"),
    *("icb, permuted+shifted+rewards", "semi-clucb, shifted+rewards"),
}
