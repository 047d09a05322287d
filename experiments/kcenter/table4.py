"""Table IV of Jali, Karamchandani, Moharir: queries of DS-TS, random sampling and naive greedy, by n and k.

delta = 0.1, Bernoulli KL intervals with a union over pairs for both, DS-TS with mix 0.99: its runs are those of Table
III. Random sampling queries random arms until the intervals tell the centers, and takes minutes a run from n = 500 on:
--random-up-to says where to leave it out. Naive greedy reads all distances.
"""

from argparse import ArgumentParser
from functools import partial

from experiments.claims import every_run_stops
from experiments.kcenter import common, table3
from experiments.kcenter.sampling import (
    DRAWS,
    Measured,
    Place,
    Sweeps,
    cells_of,
    draw_by_n_and_k,
    mean,
    schedule,
    scheduled_runs,
)
from experiments.kcenter.table3 import BY_K, MIX, images_of, places_of, sizes_of, thompson_runs
from experiments.papers import printed_by_place
from experiments.report import Claim, Report, joined, number
from experiments.settings import Settings
from jaxbandits.kcenter import KL, ds_random, naive_queries

RANDOM_UP_TO = 100
RANDOM_RUNS = {100: 2}  # one for every other n
UNIT = 1e5
RULES = ("DS-TS", "random")
PRINTED = {rule: printed_by_place("kcenter", f"table4 {rule}") for rule in RULES}


def add_arguments(parser: ArgumentParser) -> None:
    table3.add_arguments(parser)
    parser.add_argument(
        "--random-up-to",
        type=int,
        default=RANDOM_UP_TO,
        metavar="N",
        help="random sampling for at most so many images (%(default)s)",
    )


def run(options: Settings) -> Report:
    sizes = sizes_of(options)
    images = images_of(options, sizes)
    m = images.points.shape[1]
    sweeps: Sweeps = {}
    for n, size in sizes.items():
        sweeps["DS-TS", n] = thompson_runs(n, size, MIX, images, options)
        if n <= options.own["random_up_to"]:
            sweeps["random", n] = scheduled_runs(
                f"kcenter table 4: random, n = {n}",
                partial(ds_random, delta=common.DELTA, interval=KL()),
                images,
                schedule(n, len(images.points), first=RANDOM_RUNS.get(n, 1)),
                options=options,
                test_every=DRAWS,
                lanes=RANDOM_RUNS.get(n, 1),
            )
    places = places_of(sizes)
    thompson, random = (cells_of(sweeps, rule, places, UNIT, PRINTED[rule]) for rule in RULES)
    return Report(
        f"Table IV of Jali et al.: queries x 1e5 until k centers of n images, {images.label}",
        [cell.first for row in (thompson, random) for cell in row.values()],
        claims(thompson, random, sweeps, m, is_real=options.data is not None and not options.quick),
        joined({f"{rule}, n = {n}": columns for (rule, n), columns in sweeps.items()}, "sweep"),
        partial(
            draw_by_n_and_k,
            sweeps=sweeps,
            labels={"DS-TS": "DS-TS", "random": "random sampling"},
            printed={rule: {place: UNIT * q for place, q in row.items()} for rule, row in PRINTED.items()},
            by_k=BY_K if BY_K in sizes else max(sizes),
            known={
                "naive greedy, n m k": ("k-", lambda n, k: naive_queries(n, m, k)[0]),
                "really needed": ("k:", lambda n, k: naive_queries(n, m, k)[1]),
            },
        ),
        notes=(
            "Means of runs on the first n images with their standard errors; naive: n m k, as the paper counts, and "
            "needed: m for each candidate and each new center. An arm costs at most 2 m queries, m of them for reading "
            "it at its cap, so that random sampling may take twice the needed ones, and nearly does.",
        ),
        grid=[row for place, cell in thompson.items() for row in rows(place, cell, random.get(place), m)],
    )


def claims(
    thompson: dict[Place, Measured], random: dict[Place, Measured], sweeps: Sweeps, m: int, *, is_real: bool
) -> list[Claim]:
    def needed(place: Place) -> float:
        return naive_queries(place[0], m, place[1])[1] / UNIT

    found = [every_run_stops(sweeps.values()), common.greedy_was_found(sweeps.values())]
    if random:
        used = {place: cell.first.ours / (2 * needed(place)) for place, cell in random.items()}
        found.append(
            Claim(
                "random sampling takes more queries than naive greedy needs, and at most 2 m an arm",
                f"{shown(used)} of 2 m an arm; half is needed",
                all(0.5 < value <= 1 for value in used.values()),
            )
        )
    if is_real:
        saved = {place: needed(place) / cell.first.ours for place, cell in thompson.items()}
        statement = "DS-TS takes at least 4 times fewer queries than naive greedy needs"
        found.append(Claim(statement, shown(saved), min(saved.values()) >= 4))
    return found


def shown(values: dict[Place, float]) -> str:
    return ", ".join(f"{value:.3g} (n = {n:,}, k = {k})" for (n, k), value in values.items())


def rows(place: Place, cell: Measured, random: Measured | None, m: int) -> list[dict[str, str]]:
    """One n and k: ours, and the paper's."""
    naive, needed = (queries / UNIT for queries in naive_queries(place[0], m, place[1]))
    ours = {
        "n, k": "{}, {}: ours".format(*place),
        "naive": number(round(naive)),
        "needed": number(round(needed)),
        "random": mean(random),
        "random, ordered": random.ordered if random else "",
        "random, as a set": random.members if random else "",
        "DS-TS": mean(cell),
        "needed / DS-TS": f"{needed / cell.first.ours:.1f}",
        "instances": cell.range,
        "ordered": cell.ordered,
        "as a set": cell.members,
    }
    if place not in PRINTED["DS-TS"]:
        return [ours]
    printed = {"n, k": "  paper", "naive": ours["naive"]} | {rule: number(PRINTED[rule][place]) for rule in RULES}
    return [ours, dict.fromkeys(ours, "") | printed]
