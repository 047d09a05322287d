"""Speed of the whole engine, against a plain NumPy loop in the same call.

A row is one sweep: its queries and rounds per second (all batches together, without compilation), the speed-up over
the loop on one core, the share of lane-rounds that were busy, the compile time, and the memory of the compiled program
with its lanes.

A row also compares the sweep with what the device allows: the speed of the same sweep if its algorithm repeats its
first query. Such a round still draws keys and random numbers, answers the query and visits the host, but estimates
and decides nothing. Distributed kernel bandits query seldom and compute much. Their limit is the memory that a round
must read or the products that it must multiply, at rates measured in the same run. No program that makes the same
rounds is faster. A program that makes more queries per round may be, so queries per second stand beside rounds per
second.

- `all`: every algorithm of every family on one instance.
- the name of a family: its algorithms on more instances, with more lanes and in both precisions.
- `baseline`: one core against NumPy vectorised over the seeds, what an experienced user writes instead.
- `sweep`: the cost of a sweep beyond its rounds.
- `precision`: the difference between results in float32 and in float64.
- `programs --against REVISION`: compares the programs of all algorithms with another revision, in a checkout. Exits
  with status 1 if one differs.
"""

import importlib
from argparse import ArgumentParser
from pathlib import Path

import jax

from experiments import FAMILIES
from experiments.bench import case, gpu
from experiments.report import Report
from experiments.settings import Settings

# The rules of the other folders are in the tables of cpe and linear.
MEASURED = tuple(family for family in FAMILIES if (Path(__file__).parent / f"{family}.py").is_file())
ALONE = ("baseline", "sweep", "precision", "programs")  # benches of something other than the speed of rules
STORED = ("precision",)  # benches that keep their runs under `--store`
BENCHES = ("all", *ALONE, "gpu", *MEASURED)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "bench", nargs="?", choices=BENCHES, default="all", help="all, the engine, float32, a GPU, or a family in depth"
    )
    parser.add_argument(
        "--float32", action="store_true", help="for `all` and `gpu`: compute in JAX's default precision, 32 bit"
    )
    parser.add_argument(
        "--against", metavar="REVISION", help="for `bench programs`: revision to compare with this checkout"
    )
    parser.add_argument("--numba", action="store_true", help="for `baseline`: also numba, the extra `bench`")
    gpu.add_arguments(parser)


def run(options: Settings) -> Report:
    bench = options.extra["bench"]
    if options.extra["float32"]:
        if bench not in ("all", "gpu"):
            raise SystemExit(f"--float32 is for `bench all` and `bench gpu`, not `bench {bench}`")
        jax.config.update("jax_enable_x64", False)
    if bench in ALONE:
        return importlib.import_module(f"experiments.bench.{bench}").run(options)
    families = {name: importlib.import_module(f"experiments.bench.{name}") for name in MEASURED}
    if bench in ("all", "gpu"):
        cases = [each for module in families.values() for each in module.cases()]
        if bench == "gpu":
            return gpu.report(cases, options)
        return case.report("Speed of the whole engine, all families", wanted(cases, options), options)
    cases = wanted(families[bench].more_cases(options), options)
    return case.report(f"Speed of the whole engine: {bench}", cases, options)


def wanted(cases: list[case.Case], options: Settings) -> list[case.Case]:
    """Returns the cases of rules that `--only` names."""
    chosen = [each for each in cases if gpu.is_wanted(each.rule, options)]
    if not chosen:
        raise SystemExit(f"--only must name rules of this bench, got {' '.join(options.extra['only'])}")
    return chosen
