"""Every experiment, one after another, and one page with what the papers claim, what was measured, and the verdict.

Writes index.html, which needs no network and no other file, beside the table, the figure and the raw columns of every
experiment. An experiment that has ended is not run again by the same program with the same options; with --store one
that was killed goes on where it was.
"""

import base64
import datetime
import hashlib
import importlib
import json
import re
import struct
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape
from tqdm import tqdm

import jaxbandits
from experiments.report import number

HERE = Path(__file__).parent
TITLE = "jaxbandits: five papers, reproduced"
PAPERS = {
    "linear": ("Xu et al.", "Xu, Honda, Sugiyama (2018), fully adaptive best arm identification in linear bandits"),
    "fullbandit": ("Kuroki et al.", "Kuroki, Xu, Miyauchi, Honda, Sugiyama (2020), top-k identification from sums"),
    "kcenter": ("Jali et al.", "Jali, Karamchandani, Moharir, greedy k-center from noisy distance samples"),
    "cpe": ("Huang et al.", "Huang, Ok, Li, Chen (2018), combinatorial pure exploration with separable rewards"),
    "kernel": ("Pavlovic et al.", "Pavlovic, Salgia, Zhao (2024), distributed kernel bandits"),
}
BEYOND = "beyond the paper"
# What is wrong in a paper, for experiments that show an error of it rather than a difference from it.
ERRORS = {
    "linear_theorem3": "Theorem 3's bound H_0 <= 72 H' has a counterexample.",
    "fullbandit_certified": "SA-FOA tests a lower bound of what its guarantee needs.",
    "cpe_two_call": "Lemma 3 and Theorem 3 need the best decision to be bi-monotone, which they do not show.",
    "cpe_osa": "Algorithm 2 as printed starts beyond the budget where a variance is 0.",
}
VERDICTS = {  # and their class on the page
    "reproduced": "reproduced",
    "reproduced in part": "partly",
    "not reproduced": "not",
    "paper in error": "error",
    "holds": "reproduced",
    "holds in part": "partly",
    "does not hold": "not",
    "measured": "",
    "failed to run": "not",
}
HEADS = (
    ("paper", False),
    ("figure or table", False),
    ("what", False),
    ("numbers that agree", True),
    ("claims that hold", True),
    ("verdict", False),
    ("time", True),
    ("queries", True),
)
LINE_HEADS = (
    ("quantity", False),
    ("paper", True),
    ("ours", True),
    ("ours / paper", True),
    ("runs", True),
    ("verdict", False),
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", metavar="PREFIX", default=[""], help="experiments whose names begin so")
    parser.add_argument("--data", type=Path, metavar="DIR", help="--data of the experiments on k-center")
    parser.add_argument(
        "--quizzes", type=Path, metavar="DIR", help="--data of those on full-bandit feedback; one of them needs it"
    )
    parser.add_argument("--rerun", action="store_true", help="run again what has ended")


def run(options: Namespace, experiments: Mapping[str, str]) -> int:
    """Runs what is missing, writes the page; the exit status is 1 if an experiment failed."""
    options.out.mkdir(parents=True, exist_ok=True)
    names = [name for name in experiments if name.startswith(tuple(options.only))]
    left_out = [name for name in names if data_flags(name, options) is None]
    names = [name for name in names if name not in left_out]
    stamp = program() + f" quick={options.quick} seeds={options.seeds} data={options.data} quizzes={options.quizzes}"
    failures = {}
    with tqdm(names, unit="experiment", disable=not names) as bar:
        for name in bar:
            bar.set_postfix_str(name)
            if options.rerun or (record_of(options.out, name) or {}).get("stamp") != stamp:
                failure = run_one(name, options)
                if failure:
                    failures[name] = failure
                    continue
                path = options.out / f"{name}.json"
                path.write_text(json.dumps(json.loads(path.read_text()) | {"stamp": stamp}, indent=1))
            build(options.out, names, experiments, failures, quick=options.quick)
    page = build(options.out, names, experiments, failures, quick=options.quick)
    print(f"written: {page}")
    for name in left_out:
        print(f"{name} is left out: it needs data, see its --help", file=sys.stderr)
    for name, failure in failures.items():
        print(f"{name} failed: {failure.strip().splitlines()[-1]}", file=sys.stderr)
    return int(bool(failures))


def run_one(name: str, options: Namespace) -> str:
    """Runs an experiment in a process of its own; returns its last words if it failed.

    Compiled programs hold memory maps, of which a process may have 65,530: all experiments together need more.
    """
    command = [sys.executable, "-m", "experiments", name, "--out", str(options.out)]
    command += ["--quick"] * options.quick
    for flag, value in (("--seeds", options.seeds), ("--lanes", options.lanes), ("--store", options.store)):
        command += [flag, str(value)] if value else []
    command += ["--workers", str(options.workers)] if options.workers > 1 else []
    command += data_flags(name, options) or []
    started = time.perf_counter()
    log = options.out / f"{name}.log"
    with log.open("w") as output:
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    if status == 0:
        return ""
    words = "\n".join(log.read_text().splitlines()[-20:])
    return f"{words}\nexit status {status} after {time.perf_counter() - started:.0f} s; all of it: {log}"


def data_flags(name: str, options: Namespace) -> list[str] | None:
    """The experiment's --data, if it has one and a folder is given; None if it cannot do without."""
    parser = ArgumentParser(add_help=False)
    getattr(importlib.import_module(f"experiments.{name}"), "add_arguments", lambda parser: None)(parser)
    takes = next((action for action in parser._actions if action.dest == "data"), None)
    folder = options.quizzes if name.startswith("fullbandit") else options.data
    if takes is None or folder is None:
        return None if takes is not None and takes.required else []
    return ["--data", str(folder)]


def program() -> str:
    """What ran: versions, and a hash of the sources."""
    import jax

    digest = hashlib.sha256()
    for folder in (Path(jaxbandits.__file__).parent, HERE.parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return f"jaxbandits {jaxbandits.__version__}, jax {jax.__version__}, sources {digest.hexdigest()[:16]}"


def record_of(folder: Path, name: str) -> dict[str, Any] | None:
    """What an experiment wrote of its last run."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def build(
    folder: Path,
    names: Iterable[str],
    experiments: Mapping[str, str],
    failures: Mapping[str, str],
    *,
    quick: bool,
) -> Path:
    """Writes the page from what lies in the folder.

    Args:
        folder: with NAME.json, NAME.png and NAME.parquet of experiments.
        names: in the order of the page.
        experiments: name to first line of what it is.
        failures: name to the last words of those that failed.
        quick: whether the runs were small.

    Returns:
        Path of index.html.
    """
    items = [item_of(folder, name, experiments[name], failures.get(name, "")) for name in names]
    done = [item for item in items if item is not None]
    papers = [
        {
            "family": family,
            "short": short,
            "cite": cite,
            "experiments": [item for item in done if item["family"] == family],
        }
        for family, (short, cite) in PAPERS.items()
    ]
    jinja = Environment(loader=FileSystemLoader(HERE), autoescape=select_autoescape(["j2"]), trim_blocks=True)
    page = folder / "index.html"
    page.write_text(
        jinja.get_template("page.html.j2").render(
            title=TITLE,
            papers=[paper for paper in papers if paper["experiments"]],
            heads=HEADS,
            line_heads=LINE_HEADS,
            made=datetime.date.today().isoformat(),
            machine=next((item["machine"] for item in done if item["machine"]), ""),
            versions=next((item["versions"] for item in done if item["versions"]), ""),
            sizes="These are small runs (--quick), with wide errors." if quick else "",
        )
    )
    return page


def item_of(folder: Path, name: str, about: str, failure: str) -> dict[str, Any] | None:
    """What the page shows of one experiment; None if it has not run."""
    record = record_of(folder, name)
    if record is None and not failure:
        return None
    if failure:
        record = {"title": about, "lines": [], "claims": [], "notes": [], "seconds": 0.0, "pulls": 0}
    family = next(family for family in PAPERS if name.startswith(family))
    lines = [shown(line) for line in record["lines"]]
    printed = [line for line in lines if line["printed"]]
    holds = [claim["holds"] for claim in record["claims"]]
    agree = sum(line["verdict"] == "agrees" for line in printed)
    found = re.match(r"(Figure|Table) (\w+)", about)
    item = found[0] if found else re.sub(r".*_(figure|table)(\d+)$", r"\1 \2", name).capitalize()
    item = item if re.match(r"(Figure|Table) \w+$", item) else name.partition("_")[2].replace("_", " ")
    verdict = verdict_of(name, agree, len(printed), holds, is_of_paper=bool(re.match(r"Figure|Table", item)))
    image = folder / f"{name}.png"
    shown_image = {}
    if image.exists() and not failure:
        data = image.read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        shown_image = {
            "image": "data:image/png;base64," + base64.b64encode(data).decode(),
            "width": width,
            "height": height,
            "alt": f"Figure of {name}. {about} {claims_in_words(record['claims'])}",
        }
    return {
        "name": name,
        "family": family,
        "item": item,
        "about": about,
        "title": record["title"],
        "lines": lines if not record.get("grid") else [],
        "grid": record.get("grid"),
        "claims": record["claims"],
        "notes": record["notes"],
        "printed": len(printed),
        "agree": agree,
        "hold": sum(holds),
        "verdict": "failed to run" if failure else verdict,
        "verdict_class": VERDICTS["failed to run" if failure else verdict],
        "reason": ERRORS.get(name, ""),
        "failure": failure,
        "seconds": record["seconds"],
        "time": duration(record["seconds"]),
        "pulls": record["pulls"],
        "pulls_text": f"{record['pulls']:.2g}" if record["pulls"] else "",
        "command": record.get("command", ""),
        "machine": record.get("machine", ""),
        "versions": record.get("versions", ""),
        "parquet": f"{name}.parquet" if (folder / f"{name}.parquet").exists() and not failure else "",
    } | shown_image


def verdict_of(name: str, agree: int, printed: int, holds: list[bool], *, is_of_paper: bool) -> str:
    """One of `VERDICTS`, from the numbers that agree and the claims that hold."""
    if name in ERRORS:
        return "paper in error"
    total, good = printed + len(holds), agree + sum(holds)
    if total == 0:
        return "measured"
    if not is_of_paper:
        return "holds" if good == total else "holds in part" if good > 0 else "does not hold"
    if good == total:
        return "reproduced"
    return "reproduced in part" if good > 0 else "not reproduced"


def shown(line: Mapping[str, Any]) -> dict[str, Any]:
    """One number as the page shows it."""
    printed, ours, se = line["printed"], line["ours"], line["se"]
    has_ours = ours is not None
    troubles = [f"{line[kind]} {kind}" for kind in ("censored", "failed") if line[kind]]
    verdict = "" if printed is None else line["verdict"]
    return {
        "quantity": line["quantity"],
        "printed": "" if printed is None else number(printed),
        "printed_value": "" if printed is None else printed,
        "ours": (number(ours) + (f" ± {number(se)}" if se else "")) if has_ours else "-",
        "ours_value": ours if has_ours else "",
        "ratio": f"{ours / printed:.3g}" if printed and has_ours else "",
        "runs": f"{line['runs']}" + (f" ({', '.join(troubles)})" if troubles else ""),
        "runs_value": line["runs"],
        "verdict": verdict,
        "verdict_class": verdict.lower(),
        "note": line["note"],
    }


def claims_in_words(claims: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(f"{'Holds' if claim['holds'] else 'Fails'}: {claim['statement']}." for claim in claims)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
