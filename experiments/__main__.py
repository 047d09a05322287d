"""Reproduces a figure or a table of the papers: `python -m experiments NAME`."""

import argparse
import ast
import contextlib
import importlib
import json
import logging
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from experiments._interrupts import raised_again
from experiments.report import positive, record, save, table, whole
from jaxbandits import __version__, process_pool
from jaxbandits.engine.sizing import cores

HERE = Path(__file__).parent
FAMILIES = ("linear", "fullbandit", "kcenter", "cpe", "kernel")
BENCHES = ("all", "sweep", *FAMILIES)


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
    width = max(map(len, names))
    lines = [f"  {name.ljust(width)}  {text}" for name, text in names.items()]
    lines.append(f"  {'report'.ljust(width)}  All of these, and one page: what the papers claim, what was found.")
    lines.append(f"  {'bench [NAME]'.ljust(width)}  Speed; NAME is one of: {', '.join(BENCHES)}.")
    return "\n".join(["experiments:", *lines])


@raised_again()
def main(arguments: list[str]) -> int:
    """Runs one experiment: prints its table, writes its figure, its raw columns and what the report shows of it."""
    names = experiments()
    words = [argument for argument in arguments if not argument.startswith("-")]
    chosen = next((word for word in words if word in names or word in ("bench", "report")), next(iter(words), None))
    if chosen is None:
        print(__doc__, listing(), "Each takes --help.", sep="\n\n")
        return 0
    bench, report_page = chosen == "bench", chosen == "report"
    if not (bench or report_page) and chosen not in names:
        print(f"there is no experiment {chosen!r}\n\n{listing()}", file=sys.stderr)
        return 2

    module = importlib.import_module(f"experiments.{'page' if report_page else chosen}")
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments {chosen}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[chosen], help=argparse.SUPPRESS)
    if bench:
        parser.add_argument(
            "bench",
            nargs="?",
            choices=BENCHES,
            default="all",
            help="one table of all, the engine, or a family in depth",
        )
    parser.add_argument("--quick", action="store_true", help="a smaller run that shows the same thing")
    parser.add_argument("--seeds", type=positive, help="runs of each setting (default: the experiment's own)")
    parser.add_argument("--lanes", type=positive, help="lanes of one batch (default: chosen from the device)")
    if not bench:
        parser.add_argument("--store", type=Path, help="folder for finished runs; after a kill, the same call goes on")
        parser.add_argument(
            "--workers", type=positive, default=1, help="processes to share out the cores of this machine (%(default)s)"
        )
    parser.add_argument("--verbose", action="store_true", help="say what is compiled, resumed and written")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for what is written (%(default)s)")
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    options = parser.parse_args(arguments)
    if report_page:
        return module.run(options, names)

    import jax

    jax.config.update("jax_enable_x64", True)
    if not bench:  # which measures what compiling takes
        keep_compiled_programs()
    logging.basicConfig(format="%(message)s", level=logging.INFO if options.verbose else logging.WARNING)

    options.simulated = []
    started = time.perf_counter()
    try:
        with contextlib.nullcontext() if bench else workers(options, chosen):
            report = module.run(options)
    except KeyboardInterrupt as interrupt:
        if bench:
            kept = "nothing is kept"
        elif not options.store:
            kept = "nothing is kept without --store DIR"
        else:
            kept = str(interrupt) or f"what is finished is stored in {options.folder}; the same call goes on from there"
        print(f"\ninterrupted: {kept}", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - started
    name = f"bench_{options.bench}" if bench else chosen
    written = save(report, name, options.out)
    print(f"\n{table(report)}\n")
    device = jax.devices()[0]
    machine = (
        f"{jax.device_count()} x {device.device_kind} ({device.platform}), {cores()} of {os.cpu_count()} CPU cores"
    )
    versions = f"jaxbandits {__version__}, jax {jax.__version__}, Python {platform.python_version()}"
    print(f"{seconds:.1f} s on {machine}, {versions}")
    written.append(options.out / f"{name}.json")
    told = {"command": f"python -m experiments {shlex.join(arguments)}", "seconds": seconds, "machine": machine}
    told |= {"versions": versions, "pulls": sum(options.simulated)}
    text = json.dumps(record(report) | told, indent=1)
    whole(written[-1], lambda path: path.write_text(text))
    print("written:", ", ".join(map(str, written)))
    return 0


@contextlib.contextmanager
def workers(options: argparse.Namespace, experiment: str) -> Iterator[None]:
    """Sets `options.executor`, and `options.folder` to where the experiment's runs go.

    Workers need a place to write to, so without --store they get a temporary one.
    """
    options.executor = None
    options.folder = options.store and options.store / experiment
    with contextlib.ExitStack() as stack:
        if options.workers > 1:
            import jax

            jax.config.update("jax_platforms", "cpu")  # of this process, so that workers have the GPUs for themselves
            if options.folder is None:
                options.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            options.executor = stack.enter_context(process_pool(options.workers))
        yield


def keep_compiled_programs() -> None:
    """Compiled programs are kept from one call to the next, where the user has not chosen a place for them."""
    import jax

    if not jax.config.jax_compilation_cache_dir:
        from experiments._simulate import cache_folder

        settings = {"jax_compilation_cache_dir": str(cache_folder()), "jax_persistent_cache_min_compile_time_secs": 0.5}
        for name, value in settings.items():
            jax.config.update(name, value)
            os.environ[name.upper()] = str(value)  # for the workers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
