"""Reproduces a figure or a table of the papers: `python -m experiments NAME`."""

import argparse
import contextlib
import difflib
import importlib
import json
import logging
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments import experiments, load
from experiments.bench import BENCHES, STORED
from experiments.files import atomically, save
from experiments.report import Report, record, table
from experiments.settings import Settings, add_common, add_parameters, assigned, parameters, settings_of, stamp
from jaxbandits import __version__, process_pool
from jaxbandits.engine.sweep.layout import cores


def listing() -> str:
    """Lists all that can be run, one line each."""
    names = experiments() | {
        "report": "All of these, and one page with the claims of the papers and our findings.",
        "bench [NAME]": f"Speed; NAME is one of: {', '.join(BENCHES)}.",
    }
    width = max(map(len, names))
    return "\n".join(["experiments:", *(f"  {name.ljust(width)}  {text}" for name, text in names.items())])


def parser_of(name: str) -> argparse.ArgumentParser:
    """Builds the command line of an experiment, of the report or of the benches."""
    elsewhere = {"report": "experiments.page", "bench": "experiments.bench"}
    module = importlib.import_module(elsewhere[name]) if name in elsewhere else load(name)
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[name], help=argparse.SUPPRESS)
    parser.set_defaults(run=module.run)
    add_common(parser)
    if name not in elsewhere:
        add_parameters(parser, module.run)
    getattr(module, "add_arguments", lambda parser: None)(parser)
    return parser


def main(arguments: list[str]) -> int:
    """Runs one experiment: prints its table; writes its figure, its raw columns and its part of the report."""
    names = [*experiments(), "bench", "report"]
    words = [argument for argument in arguments if not argument.startswith("-")]
    chosen = next((word for word in words if word in names), next(iter(words), None))
    if chosen is None:
        print(__doc__, listing(), "Each takes --help.", sep="\n\n")
        return 0
    if chosen not in names:
        near = difflib.get_close_matches(chosen, names, n=3)
        advice = f"did you mean {' or '.join(near)}?" if near else "python -m experiments lists them all"
        print(f"there is no experiment {chosen!r}: {advice}", file=sys.stderr)
        return 2
    options = parser_of(chosen).parse_args(arguments)
    run = vars(options).pop("run")
    if chosen == "report":
        return run(options)

    import jax

    jax.config.update("jax_enable_x64", True)
    bench = chosen == "bench"
    if not bench:  # a bench measures compile times
        keep_compiled_programs()
    logging.basicConfig(format="%(message)s", level=logging.INFO if options.verbose else logging.WARNING)

    pulls: list[int] = []
    settings = settings_of(options)._replace(count=pulls.append)
    started = time.perf_counter()
    try:
        with placed(settings, options, chosen) as placed_settings:
            report = run(placed_settings, **settings.chosen)
    except KeyboardInterrupt as interrupt:
        kept = str(interrupt) or f"finished runs are stored in {options.store}; the same call resumes from them"
        if bench and options.bench not in STORED:
            kept = "a bench of speed keeps nothing"
        elif not options.store:
            kept = "without --store DIR nothing is kept"
        print(f"\ninterrupted: {kept}", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - started
    name = f"bench_{options.bench}" if bench else chosen
    if settings.chosen:
        report, name = told(report, run, settings), f"{name}_{suffix(settings)}"
    written = save(report, name, options.out)
    print(f"\n{table(report)}\n")
    device = jax.devices()[0]
    machine = (
        f"{jax.device_count()} x {device.device_kind} ({device.platform}), {cores()} of {os.cpu_count()} CPU cores"
    )
    versions = f"jaxbandits {__version__}, jax {jax.__version__}, Python {platform.python_version()}"
    print(f"{seconds:.1f} s on {machine}, {versions}")
    written.append(options.out / f"{name}.json")
    facts = {"command": f"python -m experiments {shlex.join(arguments)}", "seconds": seconds, "machine": machine}
    facts |= {"versions": versions, "pulls": sum(pulls), "stamp": stamp(chosen, settings)}
    facts |= {"set": settings.chosen} if settings.chosen else {}
    text = json.dumps(record(report) | facts, indent=1)
    atomically(written[-1], lambda path: path.write_text(text))
    print("written:", ", ".join(map(str, written)))
    # The claims of an experiment are findings. Equal programs are a check that a script may rely on.
    return int(bench and options.bench == "programs" and not all(claim.holds for claim in report.claims))


def told(report: Report, run: Callable, settings: Settings) -> Report:
    """Adds to the title and to the notes which parameters were set."""
    known = parameters(run)
    shown = {name: f"{name} = {assigned(value)}" for name, value in settings.chosen.items()}
    defaults = ", ".join(f"{text} (default {assigned(known[name])})" for name, text in shown.items())
    title = f"{report.title} [set: {', '.join(shown.values())}]"
    return report._replace(title=title, notes=[*report.notes, f"Set on the command line: {defaults}."])


def suffix(settings: Settings) -> str:
    """Returns the parameters that were set, for the names of files."""
    return "_".join(f"{name}={assigned(value)}" for name, value in settings.chosen.items())


@contextlib.contextmanager
def placed(settings: Settings, options: argparse.Namespace, name: str) -> Iterator[Settings]:
    """Adds a store and workers to the settings. Workers need a store: without --store it is temporary.

    Runs with other parameters have a folder of their own, because sweeps are named alike.
    """
    store = options.store and options.store / name.partition("_")[0] / suffix(settings)
    with contextlib.ExitStack() as stack:
        executor = None
        if options.workers > 1:
            import jax

            jax.config.update("jax_platforms", "cpu")  # this process leaves the GPUs to its workers
            store = store or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            executor = stack.enter_context(process_pool(options.workers))
        yield settings._replace(store=store, workers=options.workers, executor=executor)


def keep_compiled_programs() -> None:
    """Keeps compiled programs from one call to the next, unless the user has chosen a folder for them."""
    import jax

    if not jax.config.jax_compilation_cache_dir:
        from experiments.simulate import cache_folder

        settings = {"jax_compilation_cache_dir": str(cache_folder()), "jax_persistent_cache_min_compile_time_secs": 0.5}
        for name, value in settings.items():
            jax.config.update(name, value)
            os.environ[name.upper()] = str(value)  # for the workers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
