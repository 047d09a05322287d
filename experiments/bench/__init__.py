"""Speed of the whole engine, against a plain NumPy loop in the same call.

A row is one sweep: its queries and rounds a second (all batches together, without compilation), how much faster than
the loop on one core, the share of lane-rounds that were busy, the compile time and the memory of the compiled program
with its lanes.

It also says how far the algorithm is from what the device allows: the speed of the same sweep if its algorithm asks
its first question again and again. Keys, random numbers and answers of a round, and the host's visits, are left, but
nothing is estimated or decided. For distributed kernel bandits, which ask seldom and compute much, it is the memory
that a round must read or the products that it must multiply, at rates measured in the same run. No program that makes
the same rounds is faster; one that stands for more queries in a round may be, which is why queries a second stand
beside rounds a second. `all` has every algorithm of every family on one instance; a family's name, its algorithms on
more instances, with more lanes and in both precisions; `sweep`, what a sweep costs beyond its rounds; `precision`, how
far results in float32 are from those in float64; `programs --against REVISION`, in a checkout, whether the programs of
all algorithms are those of another revision, with exit status 1 if one is not.
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
ALONE = ("sweep", "precision", "programs")  # files of their own, that look at something else than the speed of rules
STORED = ("precision",)  # whose runs `--store` keeps
BENCHES = ("all", *ALONE, "gpu", *MEASURED)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "bench", nargs="?", choices=BENCHES, default="all", help="all, the engine, float32, a GPU, or a family in depth"
    )
    parser.add_argument("--float32", action="store_true", help="of `all` and `gpu`: in JAX's default precision, 32 bit")
    parser.add_argument(
        "--against", metavar="REVISION", help="of `bench programs`: what is compared with this checkout"
    )
    gpu.add_arguments(parser)


def run(options: Settings) -> Report:
    bench = options.own["bench"]
    if options.own["float32"]:
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
        return case.report("Speed of the whole engine, all families", cases, options)
    cases = families[bench].more_cases(options)
    return case.report(f"Speed of the whole engine: {bench}", cases, options)
