"""float32 against float64: COCI, uniform sampling and CLUCB on the same samples of the eight instances.

The instances of `cpe_eight`, delta = 0.1, blocks of up to 32 pulls (CLUCB: single pulls).
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import all_of
from experiments.cpe import common
from experiments.cpe.eight import NAMES
from experiments.figures import COLORS, split
from experiments.report import Claim, Report, joined, line_of, number, plus_minus
from experiments.settings import Settings
from jaxbandits import cpe

QUICK = ("best5",)
RULES = tuple(common.RULES)
DTYPES = {"float32": jnp.float32, "float64": jnp.float64}
SAME = 0.99  # share of the runs that must not differ

Sweeps = dict[tuple[str, str, str], jaxbandits.Results]  # (instance, rule, dtype)


def run(options: Settings) -> Report:
    replicates = options.seeds or (20 if options.quick else 400)
    sweeps: Sweeps = {}
    for name in QUICK if options.quick else NAMES:
        for dtype, kind in DTYPES.items():
            case = getattr(cpe, name)(dtype=kind)
            for rule in RULES:
                if not common.refuses(rule, case):
                    label = f"{rule}, {dtype}"
                    sweeps[name, rule, dtype] = common.runs(
                        f"cpe float32: {name}", case, rule, options=options, replicates=replicates, label=label
                    )
    pairs = [(name, rule) for name, rule, dtype in sweeps if dtype == "float64"]
    lines = {key: line_of(": ".join(key), sweep) for key, sweep in sweeps.items()}
    same = {pair: twins_agree(sweeps, *pair, ("pulls", "counts", "answer")) for pair in pairs}
    apart = {
        pair: np.abs(np.subtract(*(sweeps[*pair, dtype].columns["pulls"].astype(int) for dtype in DTYPES)))
        for pair in pairs
    }
    return Report(
        "float32 against float64: the same samples, the same runs?",
        list(lines.values()),
        [
            *(share_claim(sweeps, pairs, rule) for rule in RULES),
            all_of(
                "float32 has the answer of float64 in every run",
                np.concatenate([twins_agree(sweeps, *pair, ("answer",)) for pair in pairs]),
            ),
            common.all_right(list(sweeps.values())),
        ],
        joined(sweeps),
        partial(draw, sweeps=sweeps, pairs=pairs),
        notes=(
            "Sums of 0/1 samples are integers and all others compensated, so that only the radii and the last digit of "
            "the estimates differ. Every run of uniform sampling has the same pulls up to its end. CLUCB's decisions "
            "depend on how ties of the estimates break, and estimates of Bernoulli arms tie often.",
        ),
        grid=[
            {"": ": ".join(pair)}
            | {f"T, {dtype}": plus_minus(lines[*pair, dtype]) for dtype in DTYPES}
            | {
                "same pulls of every arm": f"{same[pair].sum()}",
                "largest difference of T": f"{apart[pair].max()}",
                "runs": f"{len(same[pair])}",
            }
            for pair in pairs
        ],
    )


def twins_agree(sweeps: Sweeps, name: str, rule: str, columns: tuple[str, ...]) -> np.ndarray:
    return common.twins_agree(*(sweeps[name, rule, dtype] for dtype in DTYPES), columns)


def share_claim(sweeps: Sweeps, pairs: list[tuple[str, str]], rule: str) -> Claim:
    agree = {name: twins_agree(sweeps, name, rule, ("pulls",)) for name, other in pairs if other == rule}
    together = np.concatenate(list(agree.values()))
    differ = [f"{name} {(~runs).sum()}" for name, runs in agree.items() if not runs.all()]
    return Claim(
        f"{rule}: float32 has the T of float64 in at least {SAME:.0%} of the runs",
        f"{number(int(together.sum()))} of {number(len(together))}"
        + (f"; not in {', '.join(differ)}" if differ else ""),
        together.mean() >= SAME,
    )


def draw(figure: Any, *, sweeps: Sweeps, pairs: list[tuple[str, str]]) -> None:
    """A point for every run; the diagonal is where the twins are equal."""
    panels = split(figure, (8.6, 3.6), 1, len(RULES), sharex=True, sharey=True)
    for axes, rule, color in zip(panels, RULES, COLORS, strict=False):
        names = [name for name, other in pairs if other == rule]
        ours, theirs = (
            np.concatenate([sweeps[name, rule, dtype].columns["pulls"] for name in names]) for dtype in DTYPES
        )
        differ = ours != theirs
        axes.axline((1000, 1000), (10_000, 10_000), color="k", lw=0.8)
        axes.plot(theirs, ours, ".", ms=3, color=color, label=f"equal: {number(int((~differ).sum()))}")
        marks = {"marker": "o", "ls": "", "ms": 9, "mfc": "none", "mec": "k"}
        axes.plot(theirs[differ], ours[differ], label=f"different: {number(int(differ.sum()))}", **marks)
        axes.set(xscale="log", yscale="log", aspect="equal", title=rule, xlabel="T in float64")
        axes.legend(loc="upper left", fontsize=9)
    panels[0].set_ylabel("T in float32")
    figure.suptitle("The same samples in float32 and in float64: runs of all instances")
