"""All experiments, several side by side, and one page with the papers' claims, our measurements and the verdicts.

Writes index.html, which needs no network and no other file, beside the table, the figure and the raw columns of every
experiment. An experiment that has ended is not run again by the same program with the same options, in a report or by
itself. One that was killed resumes: finished runs are kept in --store, by default beside the page, in a folder for each
program and set of options.
"""

import datetime
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape

from experiments import FAMILIES, experiments
from experiments.page import running, tables
from experiments.page.items import count, is_of_paper, item_of, numeric
from experiments.papers import paper
from experiments.settings import whole

HERE = Path(__file__).parent


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", metavar="PREFIX", default=[""], help="experiments whose names begin so")
    parser.add_argument("--data", type=Path, metavar="DIR", help="--data for the experiments on k-center")
    parser.add_argument(
        "--quizzes",
        type=Path,
        metavar="DIR",
        help="--data for the experiments on full-bandit feedback, which one needs",
    )
    parser.add_argument(
        "--jobs", type=whole, help="experiments side by side (default: one per core; on an accelerator, one)"
    )
    parser.add_argument("--rerun", action="store_true", help="run finished experiments again")
    parser.add_argument(
        "--tables",
        action="store_true",
        help="run nothing: keep the records of --out in experiments/records, and write experiments/RESULTS.md",
    )


def run(options: Namespace) -> int:
    """Runs the missing experiments and writes the page. Returns 1 if an experiment failed, 130 after Ctrl-C."""
    about = experiments()
    names = [name for name in about if name.startswith(tuple(options.only))]
    if options.tables:
        print(f"kept: {', '.join(tables.keep(options.out, names)) or 'nothing'}; written: {tables.write()}")
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    options.store = options.store or running.own_store(options)
    left_out = [name for name in names if running.data_flags(name, options) is None]
    names = [name for name in names if name not in left_out]
    write = partial(build, options.out, names, about, quick=options.quick)
    try:
        failures = running.run_all(names, options, write)
    except KeyboardInterrupt:
        print("\ninterrupted: the same call runs the experiments that have not ended", file=sys.stderr)
        return 130
    print(f"written: {write(failures)}", flush=True)  # before the failures, even if both streams go to one file
    for name in left_out:
        print(f"{name} is left out: it needs data, see its --help", file=sys.stderr)
    for name, failure in failures.items():
        print(f"{name} failed: {failure.strip().splitlines()[-2:]}", file=sys.stderr)
    return int(bool(failures))


def build(
    folder: Path, names: Iterable[str], about: Mapping[str, str], failures: Mapping[str, str], *, quick: bool
) -> Path:
    """Writes index.html from a folder with NAME.json, NAME.svg and NAME.parquet of experiments.

    `about` maps names to summaries, `failures` names of failed experiments to their last lines of output.
    """
    done = [item for name in names if (item := item_of(folder, name, about[name], failures.get(name, "")))]
    linked = {item["name"] for item in done}
    papers = []
    for family in FAMILIES:
        items = sorted(
            (item for item in done if item["family"] == family), key=lambda item: not is_of_paper(item["item"])
        )
        errata = [erratum._asdict() | {"link": erratum.shown_by in linked} for erratum in paper(family).errata]
        if items:
            papers.append({"family": family, **paper(family)._asdict(), "items": items, "errata": errata})
    jinja = Environment(
        loader=FileSystemLoader(HERE), autoescape=select_autoescape(["j2"]), trim_blocks=True, lstrip_blocks=True
    )
    jinja.filters |= {"count": count, "numeric": numeric}
    facts = {kind: next((item[kind] for item in done if item[kind]), "") for kind in ("machine", "versions")}
    made, page = datetime.date.today().isoformat(), folder / "index.html"
    page.write_text(jinja.get_template("page.html.j2").render(papers=papers, made=made, quick=quick, **facts))
    return page
