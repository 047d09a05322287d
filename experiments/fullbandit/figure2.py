"""Figure 2 of Kuroki et al. (2020): time of one test of every rule against the number of arms.

n = 10, 12 .. 24 arms, k = n/2, on random instances with a uniform design of 2n random super-arms. A test is timed
from A_t^-1 and the estimate to the decision, one run at a time in a compiled loop; means over 10 realizations.
The figure has no printed values, and times depend on the machine, so only their growth is checked.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from math import comb

import jax
import numpy as np
from jax import lax

from experiments import study
from experiments.claims import between
from experiments.fullbandit.common import DELTA, EPSILON, random_designs
from experiments.report import Claim, Report, line, listed, means
from experiments.settings import Settings
from jaxbandits import fullbandit
from jaxbandits.base import Array
from jaxbandits.fullbandit import Design, Estimate

SIZES = tuple(range(10, 26, 2))
GAP = 0.4
PULLS = 10_000  # pulls before the first test; they do not influence the time
ENOUGH = 0.05  # smallest length of a measurement in seconds, which makes the call's own time negligible
TRIES = 3  # number of measurements; the shortest counts, since other work disturbs the others
FLAT = 14  # allowed slowdown of a polynomial rule: (24/10)^3, for O(n^3) in SA-FOA
RULES = {
    "SAQM": fullbandit.saqm_rule,
    "ICB": fullbandit.icb_rule,
    "Exhaustive": fullbandit.exhaustive_rule,
    "SA-FOA": fullbandit.surrogates,
}


def run(options: Settings) -> Report:
    sizes = SIZES[:4] if options.quick else SIZES
    realizations = options.seeds or (2 if options.quick else 10)
    seconds = {}
    for n in sizes:
        designs = random_designs(realizations, n, n // 2)
        designs = [jax.tree.map(lambda x, r=r: x[r], designs) for r in range(realizations)]
        thetas = [fullbandit.synthetic(r, n, n // 2, GAP, shuffle=True).theta for r in range(realizations)]
        for name, rule in RULES.items():
            print(f"figure 2: {name}, n = {n}", file=sys.stderr)
            seconds[name, n] = np.array([seconds_of(rule, *each) for each in zip(designs, thetas, strict=True)])

    times = {key: line("", 1e6 * each) for key, each in seconds.items()}
    cells = study.collected({"rule": RULES, "n": sizes}, times, name="{rule}, n = {n}, microseconds")
    curves = study.by(cells, "rule")
    last = {name: lines[-1].ours for name, lines in curves.items()}
    exhaustive = means(curves["Exhaustive"])
    # Each step has four times as many sets; from this size on they dominate the time.
    per_step = (exhaustive[-1] / exhaustive[2]) ** (1 / (len(sizes) - 3))
    same = f"takes nearly the same time for all n (within a factor of {FLAT}, n = {sizes[0]} to {sizes[-1]})"

    return Report(
        "Figure 2 of Kuroki et al. (2020): time of a test",
        list(cells.lines.values()),
        [
            *(
                between(f"{name} {same}", [last[name] / lines[0].ours], most=FLAT)
                for name, lines in curves.items()
                if name != "Exhaustive"
            ),
            Claim(
                "Exhaustive takes about four times as long at each step of n (3 to 6 times a step from n = 14 on)",
                f"{per_step:.1f} times a step; steps {listed(exhaustive[1:] / exhaustive[:-1], '.1f')}",
                3 < per_step < 6,
            ),
            Claim(
                "Exhaustive is the slowest at the largest n (microseconds)",
                listed(last),
                max(last, key=last.__getitem__) == "Exhaustive",
            ),
        ],
        {
            "algorithm": np.repeat([name for name, _ in seconds], realizations),
            "n": np.repeat([n for _, n in seconds], realizations),
            "realization": np.tile(np.arange(realizations), len(seconds)),
            "seconds": np.ravel(list(seconds.values())),
        },
        study.figure(
            cells,
            "n",
            x_ticks=True,
            yscale="log",
            xlabel="arms n (k = n/2)",
            ylabel="time of a test in microseconds",
            title="Figure 2: time of one test of every rule",
        ),
        notes=(
            "A test of SAQM here includes the peeling, which an algorithm with design_matrix='limit' does once for "
            "all tests. It excludes the inversion of A_t, O(n^3), which such an algorithm does not need either.",
        ),
        grid=[
            {"n": str(n)}
            | {f"{name}, us": f"{lines[row].ours:,.3g}" for name, lines in curves.items()}
            | {"super-arms": f"{comb(n, n // 2):,}"}
            for row, n in enumerate(sizes)
        ],
    )


def seconds_of(rule: Callable, design: Design, theta: Array) -> float:
    """Measures the seconds per test, in a loop that is long enough."""

    def elapsed(tests: int) -> float:
        started = time.perf_counter()
        repeated(rule, design, theta, tests).block_until_ready()
        return time.perf_counter() - started

    elapsed(1)  # compiles
    tests = 1
    while (first := elapsed(tests)) < ENOUGH:
        tests *= 2
    return min(first, *(elapsed(tests) for _ in range(TRIES - 1))) / tests


@partial(jax.jit, static_argnames="rule")
def repeated(rule: Callable, design: Design, theta: Array, tests: int) -> Array:
    """Counts the tests that hold. Each has its own t and estimate, since XLA would compute shared parts once."""

    def test(i: Array, held: Array) -> Array:
        t = PULLS + (i + held).astype(theta.dtype)
        estimate = Estimate(theta + 1e-9 * t, design.inverse / t, t)
        if rule is fullbandit.surrogates:
            # SA-FOA finds the rivals from all 2n rows here; its own test would sample some of them.
            holds = (rule(design, estimate, t, delta=DELTA).leads <= EPSILON / 2).all()
        else:
            holds = rule(design, estimate, t, delta=DELTA, epsilon=EPSILON).stop
        return held + holds.astype(int)

    return lax.fori_loop(0, tests, test, 0)
