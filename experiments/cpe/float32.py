"""float32 against float64: COCI, uniform sampling and CLUCB on the same samples of the eight instances.

The instances of `cpe_eight`, delta = 0.1, blocks of up to 32 pulls (CLUCB: single pulls).
"""

import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import all_of
from experiments.cpe import common
from experiments.cpe.common import RULES, twins_agree
from experiments.cpe.eight import NAMES
from experiments.figures import COLORS, split
from experiments.report import Claim, Report, number, plus_minus
from experiments.settings import Settings
from jaxbandits import Results, cpe

DTYPES = {"float32": jnp.float32, "float64": jnp.float64}
SAME = 0.99  # smallest share of runs that must not differ

Twins = dict[tuple[str, str], dict[str, Results]]  # (instance, rule) -> sweeps in each dtype


def run(options: Settings) -> Report:
    shared = {"options": options, "replicates": options.seeds or (20 if options.quick else 400)}
    sweeps = {}
    for dtype, kind in DTYPES.items():
        cases = {name: getattr(cpe, name)(dtype=kind) for name in (("best5",) if options.quick else NAMES)}
        by_pair = common.compared("cpe float32: {}", cases, label=f"{{}}, {dtype}", **shared)
        sweeps |= {(*pair, dtype): sweep for pair, sweep in by_pair.items()}
    axes = {"name": cases, "rule": RULES, "dtype": DTYPES}
    cells = study.collected(axes, sweeps, name="{name}: {rule}: {dtype}")
    twins: Twins = {key[:2]: {dtype: sweeps[*key[:2], dtype] for dtype in DTYPES} for key in cells.cells}
    answers = [twins_agree(*both.values(), ["answer"]) for both in twins.values()]

    def draw(figure) -> None:
        """Draws a point per run; on the diagonal both dtypes have equal T."""
        panels = split(figure, (8.6, 3.6), 1, len(RULES), sharex=True, sharey=True)
        for axes, rule, color in zip(panels, RULES, COLORS, strict=False):
            ours, theirs = np.concatenate([pulls(both) for (_, other), both in twins.items() if other == rule], axis=1)
            differ = ours != theirs
            axes.axline((1000, 1000), (10_000, 10_000), color="k", lw=0.8)
            axes.plot(theirs, ours, ".", ms=3, color=color, label=f"equal: {number(int((~differ).sum()))}")
            marks = {"marker": "o", "ls": "", "ms": 9, "mfc": "none", "mec": "k"}
            axes.plot(theirs[differ], ours[differ], label=f"different: {number(int(differ.sum()))}", **marks)
            axes.set(xscale="log", yscale="log", aspect="equal", title=rule, xlabel="T in float64")
            axes.legend(loc="upper left", fontsize=9)
        panels[0].set_ylabel("T in float32")
        figure.suptitle("The same samples in float32 and in float64: runs of all instances")

    return study.report(
        "float32 against float64: the same samples, the same runs?",
        cells,
        [
            *(share_claim(twins, rule) for rule in RULES),
            all_of("float32 has the answer of float64 in every run", np.concatenate(answers)),
            common.all_right(sweeps.values()),
        ],
        draw=draw,
        notes=(
            "Sums of 0/1 samples are integers and all others compensated, so only the radii and the last digit of the "
            "estimates differ. Every run of uniform sampling has the same pulls up to its end. CLUCB's decisions "
            "depend on the breaking of ties, and estimates of Bernoulli arms tie often.",
        ),
        grid=[
            {"": ": ".join(pair)}
            | {f"T, {dtype}": plus_minus(cells.lines[*pair, dtype]) for dtype in DTYPES}
            | {
                "same pulls of every arm": str(twins_agree(*both.values(), ["pulls", "counts", "answer"]).sum()),
                "largest difference of T": str(np.abs(np.subtract(*pulls(both))).max()),
                "runs": str(cells.lines[*pair, "float64"].runs),
            }
            for pair, both in twins.items()
        ],
    )


def pulls(both: dict[str, Results]) -> list[np.ndarray]:
    return [sweep.columns["pulls"].astype(int) for sweep in both.values()]


def share_claim(twins: Twins, rule: str) -> Claim:
    agree = {name: twins_agree(*both.values(), ["pulls"]) for (name, other), both in twins.items() if other == rule}
    together = np.concatenate(list(agree.values()))
    differ = ", ".join(f"{name} {(~runs).sum()}" for name, runs in agree.items() if not runs.all())
    what = f"{rule}: float32 has the T of float64 in at least {SAME:.0%} of the runs"
    return all_of(what, together, differ and f"; not in {differ}")._replace(holds=together.mean() >= SAME)
