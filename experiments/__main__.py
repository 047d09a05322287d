"""Reproduces a figure or a table of the papers: `python -m experiments NAME`."""

import argparse
import ast
import importlib
import sys
import time
from pathlib import Path

from experiments.report import positive, save, table

HERE = Path(__file__).parent
FAMILIES = ("linear",)


def experiments() -> dict[str, str]:
    """Name and first docstring line of every experiment, without importing any."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        if path.stem.startswith(FAMILIES):
            found[path.stem] = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    return found


def listing() -> str:
    """All that can be run, a line each."""
    names = experiments()
    width = max(map(len, [*names, "bench FAMILY"]))
    lines = [f"  {name.ljust(width)}  {text}" for name, text in names.items()]
    lines.append(f"  {'bench FAMILY'.ljust(width)}  Speed of the engine; FAMILY is one of: {', '.join(FAMILIES)}.")
    return "\n".join(["experiments:", *lines])


def main(arguments: list[str]) -> int:
    """Runs one experiment: prints its table, writes its figure and its raw columns."""
    names = experiments()
    words = [argument for argument in arguments if not argument.startswith("-")]
    chosen = next((word for word in words if word in names or word == "bench"), next(iter(words), None))
    if chosen is None:
        print(__doc__, listing(), "Each takes --help.", sep="\n\n")
        return 0
    bench = chosen == "bench"
    if not bench and chosen not in names:
        print(f"there is no experiment {chosen!r}\n\n{listing()}", file=sys.stderr)
        return 2

    module = importlib.import_module("experiments.bench" if bench else f"experiments.{chosen}")
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments {chosen}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[chosen], help=argparse.SUPPRESS)
    if bench:
        parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--quick", action="store_true", help="a smaller run that shows the same thing")
    parser.add_argument("--seeds", type=positive, help="runs of each setting (default: the experiment's own)")
    parser.add_argument("--lanes", type=positive, help="lanes of one batch (default: chosen from the device)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for what is written (%(default)s)")
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    options = parser.parse_args(arguments)

    import jax

    jax.config.update("jax_enable_x64", True)

    started = time.perf_counter()
    report = module.run(options)
    seconds = time.perf_counter() - started
    name = f"bench_{options.family}" if bench else chosen
    written = save(report, name, options.out)
    print(f"\n{table(report)}\n")
    device = jax.devices()[0]
    print(f"{seconds:.1f} s on {jax.device_count()} x {device.device_kind} ({device.platform}), jax {jax.__version__}")
    print("written:", ", ".join(map(str, written)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
