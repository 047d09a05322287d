"""Every experiment, several side by side, and one page with what the papers claim, what was measured, and the verdict.

Writes index.html, which needs no network and no other file, beside the table, the figure and the raw columns of every
experiment. An experiment that has ended is not run again by the same program with the same options, and one that was
killed goes on where it was: finished runs lie in --store, by default beside the page, in a folder for each program and
set of options.
"""

import base64
import datetime
import re
import struct
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, select_autoescape

from experiments.page import running
from experiments.page.errata import ERRATA
from experiments.page.running import record_of
from experiments.report import number, positive

HERE = Path(__file__).parent
TITLE = "jaxbandits: five papers, reproduced"
PAPERS = {
    "linear": ("Xu et al.", "Xu, Honda, Sugiyama (2018), fully adaptive best arm identification in linear bandits"),
    "fullbandit": ("Kuroki et al.", "Kuroki, Xu, Miyauchi, Honda, Sugiyama (2020), top-k identification from sums"),
    "kcenter": ("Jali et al.", "Jali, Karamchandani, Moharir, greedy k-center from noisy distance samples"),
    "cpe": ("Huang et al.", "Huang, Ok, Li, Chen (2018), combinatorial pure exploration with separable rewards"),
    "kernel": ("Pavlovic et al.", "Pavlovic, Salgia, Zhao (2024), distributed kernel bandits"),
}
# These show an error of the paper, and not a number of it that differs.
IN_ERROR = ("linear_theorem3", "fullbandit_certified", "cpe_two_call", "cpe_osa")
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
    parser.add_argument(
        "--jobs", type=positive, help="experiments side by side (default: one a core, on an accelerator one)"
    )
    parser.add_argument("--rerun", action="store_true", help="run again what has ended")


def run(options: Namespace, experiments: Mapping[str, str]) -> int:
    """Runs what is missing, writes the page; the exit status is 1 if an experiment failed, 130 after Ctrl-C."""
    options.out.mkdir(parents=True, exist_ok=True)
    options = Namespace(**vars(options) | {"store": options.store or running.own_store(options)})
    names = [name for name in experiments if name.startswith(tuple(options.only))]
    left_out = [name for name in names if running.data_flags(name, options) is None]
    names = [name for name in names if name not in left_out]

    def write(failures: Mapping[str, str]) -> Path:
        return build(options.out, names, experiments, failures, quick=options.quick)

    try:
        failures = running.run_all(names, options, write)
    except KeyboardInterrupt:
        print("\ninterrupted: the same call goes on with what has not ended", file=sys.stderr)
        return 130
    print(f"written: {write(failures)}", flush=True)  # before the failures, wherever the two streams go
    for name in left_out:
        print(f"{name} is left out: it needs data, see its --help", file=sys.stderr)
    for name, failure in failures.items():
        print(f"{name} failed: {failure.strip().splitlines()[-1]}", file=sys.stderr)
    return int(bool(failures))


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
            "experiments": sorted(
                (item for item in done if item["family"] == family), key=lambda item: not is_of_paper(item["item"])
            ),
            "errata": [
                erratum._asdict() | {"link": any(item["name"] == erratum.shown_by for item in done)}
                for erratum in ERRATA[family]
            ],
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
    found = re.match(r"((?:Figure|Table|Theorem) \w+) of ", about)
    item = found[1] if found else re.sub(r".*_(figure|table)(\d+)$", r"\1 \2", name).capitalize()
    item = item if is_of_paper(item) else name.partition("_")[2].replace("_", " ")
    verdict = verdict_of(name, agree, len(printed), holds, is_of_paper=is_of_paper(item))
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
        "title": re.sub(r"^(Figure|Table|Theorem) \w+ of [^:]*: ", "", record["title"]),  # the item says so
        "lines": lines if not record.get("grid") else [],
        "grid": typeset(record.get("grid")),
        "claims": typeset(record["claims"]),
        "notes": typeset(record["notes"]),
        "printed": len(printed),
        "agree": agree,
        "hold": sum(holds),
        "verdict": "failed to run" if failure else verdict,
        "verdict_class": VERDICTS["failed to run" if failure else verdict],
        "reason": " ".join(erratum_in_words(name)),
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


def is_of_paper(item: str) -> bool:
    """Whether the paper has it; else it is an experiment of ours."""
    return re.match(r"(Figure|Table|Theorem) \w+$", item) is not None


def verdict_of(name: str, agree: int, printed: int, holds: list[bool], *, is_of_paper: bool) -> str:
    """One of `VERDICTS`, from the numbers that agree and the claims that hold."""
    if name in IN_ERROR:
        return "paper in error"
    total, good = printed + len(holds), agree + sum(holds)
    if total == 0:
        return "measured"
    if not is_of_paper:
        return "holds" if good == total else "holds in part" if good > 0 else "does not hold"
    if good == total:
        return "reproduced"
    return "reproduced in part" if good > 0 else "not reproduced"


def typeset(text: Any) -> Any:
    """Plus and minus as one sign, in a text or in all texts of a list or a table."""
    if isinstance(text, str):
        return text.replace("+-", "±")
    if isinstance(text, Mapping):
        return {key: typeset(value) for key, value in text.items()}
    return [typeset(each) for each in text] if isinstance(text, Sequence) else text


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


def erratum_in_words(name: str) -> list[str]:
    """What an experiment shows to be wrong in its paper."""
    found = (erratum for errata in ERRATA.values() for erratum in errata if erratum.shown_by == name)
    return [f"{erratum.where}: {erratum.printed}. {erratum.right}" for erratum in found]


def claims_in_words(claims: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(f"{'Holds' if claim['holds'] else 'Fails'}: {claim['statement']}." for claim in claims)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
