"""One experiment as a page shows it: its record, with its verdict, its rows and its figure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from experiments.page.running import record_of
from experiments.papers import paper
from experiments.report import number, two_digits

VERDICTS = {  # verdict to its class on the page
    "reproduced": "good",
    "reproduced in part": "warn",
    "not reproduced": "bad",
    "paper in error": "warn",
    "holds": "good",
    "holds in part": "warn",
    "does not hold": "bad",
    "measured": "",
    "failed to run": "bad",
}


def item_of(folder: Path, name: str, about: str, failure: str) -> dict[str, Any] | None:
    """Returns all that the page shows of one experiment; None if it has not run."""
    stored = record_of(folder, name)
    if stored is None and not failure:
        return None
    blank = {"title": about, "lines": [], "claims": [], "notes": [], "seconds": 0.0, "pulls": 0}
    blank |= dict.fromkeys(("command", "machine", "versions"), "")
    record = blank if failure or stored is None else blank | stored
    family, _, short = name.partition("_")
    numbered = re.match(r"((?:Figure|Table|Theorem) \w+) of ", about)
    item = numbered[1] if numbered else re.sub(r"^(figure|table)(\d+)$", r"\1 \2", short).capitalize()
    item = item if is_of_paper(item) else short.replace("_", " ")
    printed = [line for line in record["lines"] if line["printed"] is not None]
    agree = sum(line["verdict"].startswith("agrees") for line in printed)
    holds = [claim["holds"] for claim in record["claims"]]
    verdict = "failed to run" if failure else verdict_of(name, agree, len(printed), holds, is_of_paper(item))
    in_words = [f"{'Holds' if claim['holds'] else 'Fails'}: {claim['statement']}." for claim in record["claims"]]
    figure, columns = folder / f"{name}.svg", folder / f"{name}.parquet"
    errata = [each for each in paper(family).errata if each.shown_by == name]
    return record | {
        "name": name,
        "family": family,
        "item": item,
        "about": without_item(about),
        "title": without_item(record["title"]),
        "rows": typeset(rows_of(record)),
        "claims": typeset(record["claims"]),
        "notes": typeset(record["notes"]),
        "printed": len(printed),
        "agree": agree,
        "hold": sum(holds),
        "verdict": verdict,
        "class": VERDICTS[verdict],
        "reason": " ".join(f"{each.where}: {each.printed}. {each.right}" for each in errata),
        "failure": failure,
        "time": duration(record["seconds"]),
        "command": shown_command(record["command"]),
        "parquet": columns.name if columns.exists() and not failure else "",
        "figure": inline(figure.read_text()) if figure.exists() and not failure else "",
        "alt": " ".join([f"Figure of {name}. {about}", *in_words]),
    }


def without_item(text: str) -> str:
    """Removes the figure or table from a title; the page shows it beside the title."""
    return re.sub(r"^(Figure|Table|Theorem) \w+ of [^:]*: ", "", text)


def rows_of(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns the table of an experiment as rows of heading and cell; a verdict comes second."""
    if record.get("grid"):
        head, body = record["grid"]
        order = sorted(head, key=lambda name: (name != head[0], name != "verdict"))
        return [{name: row[head.index(name)] for name in order} for row in body]
    rows = [shown(line) for line in record["lines"]]
    return [{head: cell for head, cell in row.items() if any(other[head] for other in rows)} for row in rows]


def shown(line: Mapping[str, Any]) -> dict[str, str]:
    """Formats a line of the table as the page shows it."""
    printed, ours, se, bound = line["printed"], line["ours"], line["se"], line["bound"]
    troubles = [f"{line[kind]} {kind}" for kind in ("censored", "failed") if line[kind]]
    verdict = "" if printed is None else line["verdict"].replace("DIFFERS", "differs")
    return {
        "quantity": line["quantity"],
        "verdict": verdict + (f" ({line['note']})" if line["note"] else ""),
        "paper": "" if printed is None else number(printed),
        "ours": "-" if ours is None else number(ours) + (f" +- {number(two_digits(se))}" if se else ""),
        "ours / paper": number(float(f"{ours / printed:.3g}")) if printed and ours is not None else "",
        "ours / (T* kl)": number(float(f"{ours / bound:.3g}")) if bound and ours is not None else "",
        "runs": f"{line['runs']}" + (f" ({', '.join(troubles)})" if troubles else ""),
    }


def is_of_paper(item: str) -> bool:
    """True if the paper has this item; otherwise it is an experiment of ours."""
    return re.match(r"(Figure|Table|Theorem) \w+$", item) is not None


def verdict_of(name: str, agree: int, printed: int, holds: list[bool], is_of_paper: bool) -> str:
    """Chooses one of `VERDICTS` from the numbers that agree and the claims that hold."""
    if name in paper(name.partition("_")[0]).in_error:
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
    """Replaces +- by one sign, in a text or in all texts of a list or a table."""
    if isinstance(text, str):
        return text.replace("+-", "±")
    if isinstance(text, Mapping):
        return {typeset(key): typeset(value) for key, value in text.items()}
    return [typeset(each) for each in text] if isinstance(text, Sequence) else text


def inline(svg: str) -> Markup:
    """Returns the SVG element of a file, without its size, so that it takes the width of the page."""
    svg = svg[svg.index("<svg") :]
    return Markup(re.sub(r'(<svg[^>]*?) width="[^"]*"|(<svg[^>]*?) height="[^"]*"', r"\1\2", svg, count=2))


def shown_command(command: str) -> str:
    """Removes the paths of this machine from a command; they change no number."""
    command = re.sub(r" --(?:out|store|workers) \S+", "", command)
    return re.sub(r"(--(?:data|r6a)) \S+", r"\1 DIR", command)


def count(items: Sequence[Any], one: str, many: str) -> str:
    """Formats a number of items: "1 experiment", "2 errata"."""
    return f"{len(items)} {one if len(items) == 1 else many}"


def numeric(rows: Sequence[Mapping[str, str]], head: str) -> bool:
    """True if most cells of a column are numbers, so that it is aligned to the right."""
    cells = [row[head] for row in rows if row[head] not in ("", "-")]
    return bool(cells) and sum(re.match(r"[-+>]? ?[\d.]", cell) is not None for cell in cells) > len(cells) / 2


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
