"""Table IV of Jali, Karamchandani, Moharir: queries of DS-TS, random sampling and naive greedy, by n and k.

delta = 0.1, Bernoulli KL intervals with a union over pairs for both; DS-TS with mix 0.99, whose runs are shared with
Table III. Random sampling takes minutes per run from n = 500 on.
"""

from argparse import ArgumentParser
from functools import partial

from experiments.claims import between, every_run_stops
from experiments.kcenter import common, sampling, table3
from experiments.kcenter.sampling import Cells, Measured, Place, Rule, Sweeps, factors, mean
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, number
from experiments.settings import Settings
from jaxbandits.kcenter import KL, ds_random, naive_queries

RANDOM_UP_TO = 100
UNIT = 1e5
PRINTED = {rule: printed_by_place("kcenter", f"table4 {rule}") for rule in ("DS-TS", "random")}
RANDOM = partial(ds_random, interval=KL())
RULES = {
    "DS-TS": table3.RULES[table3.PAPER]._replace(label="DS-TS", printed=PRINTED["DS-TS"]),
    "random": Rule("random sampling", "kcenter table 4: random, n = {}", RANDOM, PRINTED["random"], is_random=True),
}


def add_arguments(parser: ArgumentParser) -> None:
    table3.add_arguments(parser)
    sampling.add_random(parser, RANDOM_UP_TO)


def run(options: Settings) -> Report:
    sizes, images = table3.sizes_and_images(options)
    sizes = {n: size._replace(random=2 if n == 100 else 1) for n, size in sizes.items()}
    m = images.points.shape[1]
    sweeps = sampling.sweeps_of(RULES, sizes, images, options)
    cells = sampling.cells_of(sweeps, RULES, UNIT)
    known = {
        "naive greedy, n m k": ("k-", lambda n, k: naive_queries(n, m, k)[0]),
        "really needed": ("k:", lambda n, k: naive_queries(n, m, k)[1]),
    }
    return sampling.report(
        f"Table IV of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        sweeps,
        RULES,
        cells,
        claims=claims(cells, sweeps, m, is_real=options.data is not None and not options.quick),
        notes=[
            "Means of runs on the first n images with their standard errors; naive: n m k, as the paper counts, and "
            "needed: m for each candidate and each new center. An arm costs at most 2 m queries, m of them to read it "
            "at its cap. Random sampling may thus take twice the needed queries, and nearly does."
        ],
        grid=[row for at, cell in cells["DS-TS"].items() for row in rows(at, cell, cells["random"].get(at), m)],
        unit=UNIT,
        known=known,
    )


def claims(cells: Cells, sweeps: Sweeps, m: int, *, is_real: bool) -> list[Claim]:
    needed = {(n, k): naive_queries(n, m, k)[1] / UNIT for n, k in cells["DS-TS"]}
    claims = [every_run_stops(sweeps.values()), common.greedy_was_found(sweeps.values())]
    if cells["random"]:
        used = {at: cell.line.ours / (2 * needed[at]) for at, cell in cells["random"].items()}
        what = "random sampling takes more queries than naive greedy needs, and at most 2 m per arm"
        within = all(0.5 < value <= 1 for value in used.values())
        claims.append(Claim(what, f"{factors(used)} of 2 m per arm; half is needed", within))
    if is_real:
        saved = {"n = {:,}, k = {}:".format(*at): needed[at] / cell.line.ours for at, cell in cells["DS-TS"].items()}
        claims.append(between("DS-TS takes at least 4 times fewer queries than naive greedy needs", saved, 4))
    return claims


def rows(at: Place, cell: Measured, random: Measured | None, m: int) -> list[dict[str, str]]:
    naive, needed = (queries / UNIT for queries in naive_queries(at[0], m, at[1]))
    ours = {
        "n, k": "{}, {}: ours".format(*at),
        "naive": number(round(naive)),
        "needed": number(round(needed)),
        "random": mean(random),
        "random, ordered (set)": common.matches(random.first) if random else "",
        "DS-TS": mean(cell),
        "needed / DS-TS": f"{needed / cell.line.ours:.1f}",
        "instances": cell.spread,
        "ordered (as a set)": common.matches(cell.first),
    }
    if at not in PRINTED["DS-TS"]:
        return [ours]
    printed = {"n, k": "  paper", "naive": ours["naive"]} | {rule: number(PRINTED[rule][at]) for rule in RULES}
    return [ours, dict.fromkeys(ours, "") | printed]
