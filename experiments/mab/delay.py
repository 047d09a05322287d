"""Late observations: pulls until the stop and regret against the delay.

Four Gaussian arms until the stop at delta = 0.1, and four Bernoulli arms of means .9, .8, .7 and .6 over a horizon.
With a delay of d rounds, every rule repeats its first pull until an observation arrives, and so for every arm that it
pulls once at first. Later, a rule that pulls by an index or by counts alone repeats itself: one observation changes
little. Rules that draw their pulls change arms as often as without a delay.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.figures import STYLES, curve, marks, ticks
from experiments.mab import common
from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, Report, joined, listed, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, feedback, mab
from jaxbandits.base import Algorithm, Outcome

DELAYS = (0, 10, 100, 1000)
GEOMETRIC = 10  # mean delay of the random one
LONGEST = 10 * GEOMETRIC  # observations that would take longer, .007 % of them, never arrive
STOPS = ("EB-TCI", "elimination", "LUCB", "T3C", "uniform")  # TTUCB does not take late observations
REGRETS = ("UCB1", "KL-UCB", "Thompson", "MOSS")
RANDOM = ("EB-TCI", "T3C", "Thompson")  # rules that draw their pulls
INDEX = ("elimination", "LUCB", "UCB1")  # rules that pull by an index or by counts alone
MEANS = (0.9, 0.8, 0.7, 0.6)
HORIZON = 10_000
NICE = [m * 10**n for n in range(1, 5) for m in (1, 1.5, 2, 3, 5, 7)]  # ticks

DRAWN = f"geometric, {GEOMETRIC}"

Delay = int | str  # rounds, or `DRAWN`
Lines = Mapping[study.Key, Line]  # lines by rule and delay


def regret_rule(name: str, problem: mab.Bernoulli, horizon: int) -> Algorithm:
    if name == "MOSS":
        return mab.moss(problem, horizon=horizon)
    return {"UCB1": mab.ucb1, "KL-UCB": mab.kl_ucb, "Thompson": mab.thompson}[name](problem)


def run(options: Settings) -> Report:
    delays = (0, 10, 100, DRAWN) if options.quick else (*DELAYS, DRAWN)
    stops, regrets = (("EB-TCI", "T3C"), ("UCB1", "Thompson")) if options.quick else (STOPS, REGRETS)
    horizon = HORIZON // 4 if options.quick else HORIZON
    seeds = options.seeds or (100 if options.quick else 400)
    shared = {"options": options, "seeds": seeds}
    pulls = study.crossed(
        {"rule": stops, "delay": delays}, partial(until_stop, **shared), name="{rule}, delay {delay}, pulls"
    )
    regret = study.crossed(
        {"rule": regrets, "delay": delays},
        partial(until_horizon, **shared, horizon=horizon),
        name="{rule}, delay {delay}, regret",
        values=lost,
    )
    switches = {key: switching(columns) for key, columns in {**pulls.cells, **regret.cells}.items()}
    wrong = study.named(pulls, study.errors(pulls))
    return Report(
        f"Late observations: pulls until the stop, and regret after {horizon:,} pulls",
        [*pulls.lines.values(), *regret.lines.values()],
        [
            *claims(pulls.lines, regret.lines, delays),
            repeating(switches),
            common.confident({name: each for name, each in wrong.items() if each[1]}),
        ],
        joined({"pulls": study.columns(pulls), "regret": study.columns(regret)}, label="quantity"),
        partial(draw, pulls=pulls.lines, regret=regret.lines, delays=delays),
        notes=(
            f"Delays are in rounds; a round of LUCB is two pulls. The geometric delay has mean {GEOMETRIC}. Pulls "
            "and regret include those whose observations had not arrived. Threshold of the stops: gk16, a heuristic; "
            "successive elimination has its own radius, and drops arms only when the observed pulls of all that remain "
            f"are equally many. Runs are censored after {common.LONGEST:,} rounds. Switches: rounds with other arms "
            "than the round before.",
            "Joulani, Gyorgy and Szepesvari (2013) bound the regret that a constant delay adds by delay times the sum "
            "of the gaps, for rules that keep a queue of observations for each arm (QPM-D). These rules keep none.",
        ),
        grid=[
            {"rule": rule, "": quantity}
            | {str(delay): plus_minus(lines[rule, delay], digits).replace("nan", "-") for delay in delays}
            | {"runs": str(seeds)}
            for quantity, lines, rules, digits in (
                ("pulls", pulls.lines, stops, 0),
                ("regret", regret.lines, regrets, 1),
            )
            for rule in rules
        ]
        + [
            {"rule": rule, "": "switches, %"}
            | {str(delay): f"{100 * switches[rule, delay]:.3g}" for delay in delays}
            | {"runs": str(seeds)}
            for rule in (*stops, *regrets)
        ],
    )


def late(algorithm: Algorithm, instance: mab.Instance, delay: Delay) -> tuple:
    """Returns the algorithm and its environment with a delay. Results have the columns of `common.counted`."""
    law = delay if isinstance(delay, int) else feedback.Geometric(GEOMETRIC, LONGEST)
    environment = common.counted(mab.environment(instance, algorithm), algorithm, instance.problem.arms)
    return feedback.delayed(algorithm, environment, delay=law)


def until_stop(rule: str, delay: Delay, **shared: Any) -> Results:
    instance = mab.gauss4()

    def build(task: Any, key: Any) -> tuple:
        return late(common.RULES[rule](instance.problem, delta=common.DELTA), instance, delay)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": ~mab.is_right(instance, outcome.answer)}

    name = f"mab delay, {delay}: {rule}"
    return simulate(name, build, max_rounds=common.LONGEST, metrics=metrics, **shared)


def until_horizon(rule: str, delay: Delay, horizon: int, **shared: Any) -> Results:
    instance = mab.bernoulli(MEANS)

    def build(task: Any, key: Any) -> tuple:
        return late(regret_rule(rule, mab.Bernoulli(len(MEANS)), horizon), instance, delay)

    name = f"mab delay, {delay}, regret, {horizon}: {rule}"
    return simulate(name, build, max_rounds=horizon, horizon=horizon, **shared)


def lost(columns: Columns) -> np.ndarray:
    """Computes the regret of every run."""
    return columns["counts"] @ (max(MEANS) - np.array(MEANS))


def switching(columns: Columns) -> float:
    """Returns the share of rounds with other arms than the round before, over all runs."""
    return float(np.sum(columns["switches"]) / np.sum(columns["rounds"]))


def added(lines: Lines, rule: str, delay: Delay) -> Line:
    """Returns what a delay adds to the mean without one."""
    plain, slow = lines[rule, 0], lines[rule, delay]
    return Line("", slow.ours - plain.ours, float(np.hypot(slow.se, plain.se)))


def claims(pulls: Lines, regret: Lines, delays: Sequence[Delay]) -> list[Claim]:
    constant = [delay for delay in delays if isinstance(delay, int) and delay > 0]
    stops, regrets = (tuple(dict.fromkeys(rule for rule, _ in lines)) for lines in (pulls, regret))
    gaps, longest = float(np.sum(max(MEANS) - np.array(MEANS))), max(constant)
    more = {rule: added(pulls, rule, longest) for rule in stops}
    shares = {
        f"{rule}, delay {delay}": Line("", part.ours / (delay * gaps), part.se / (delay * gaps))
        for rule in regrets
        for delay in constant
        for part in [added(regret, rule, delay)]
    }
    largest = max(shares, key=lambda name: shares[name].ours)
    return [
        Claim(
            f"a delay of {longest} rounds costs every rule at least {longest} pulls, those on the way when it stops",
            ", ".join(
                f"{rule} {part.ours:,.0f}" if np.isfinite(part.ours) else f"{rule} -" for rule, part in more.items()
            )
            + "; -: no run stopped" * any(np.isnan(part.ours) for part in more.values()),
            all(not part.ours + STANDARD_ERRORS * part.se < longest for part in more.values()),
        ),
        Claim(
            f"a constant delay adds at most delay x sum of gaps to the regret, up to {STANDARD_ERRORS} standard errors",
            f"at most {shares[largest].ours:.2f} +- {shares[largest].se:.2f} of it ({largest})",
            all(share.ours - STANDARD_ERRORS * share.se <= 1 for share in shares.values()),
        ),
    ]


def repeating(switches: Mapping[study.Key, float], delay: int = 100) -> Claim:
    ratios = {rule: share / switches[rule, 0] for (rule, each), share in switches.items() if each == delay}
    drawn = [ratio for rule, ratio in ratios.items() if rule in RANDOM]
    return Claim(
        f"a delay of {delay} rounds halves how often index rules change arms; rules that draw stay within 20 %",
        listed(ratios, ".3g"),
        0.8 <= min(drawn) <= max(drawn) <= 1.2 and max(ratios[rule] for rule in INDEX if rule in ratios) <= 0.5,
    )


def draw(figure: Any, *, pulls: Lines, regret: Lines, delays: Sequence[Delay]) -> None:
    figure.set_size_inches(9.6, 4.6)
    constant = [delay for delay in delays if isinstance(delay, int)]
    for axes, lines in zip(figure.subplots(1, 2), (pulls, regret), strict=True):
        for style, rule in enumerate(dict.fromkeys(rule for rule, _ in lines)):
            curve(axes, constant, [lines[rule, delay] for delay in constant], rule, style)
            random = lines[rule, DRAWN]
            axes.plot(GEOMETRIC, random.ours, **marks(style) | {"mfc": STYLES[style]["color"]})
        axes.set_xscale("symlog", linthresh=GEOMETRIC)
        axes.set(yscale="log", xlabel="delay, rounds (filled: geometric)")
        axes.legend(fontsize=9)
        ticks(axes, constant)
        low, high = axes.get_ylim()
        ticks(axes, [x for x in NICE if low <= x <= high], [f"{x:,.0f}" for x in NICE if low <= x <= high], axis="y")
    figure.axes[0].set(title="Four Gaussian arms, delta = 0.1", ylabel="pulls until the stop")
    figure.axes[1].set(title="Bernoulli arms of means .9, .8, .7, .6", ylabel="regret")
