"""Tables of all results, in Markdown: `experiments/RESULTS.md`, from the records in `experiments/records`.

A record is the JSON that an experiment writes, without what belongs to the machine's folders. A quick run stands in
until there is one at full size. The page is a function of the records alone, so a test can compare the two.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import FAMILIES, HERE, experiments
from experiments.page.items import duration, is_of_paper, item_of, numeric, shown_command
from experiments.page.running import record_of
from experiments.papers import paper

RECORDS, PAGE = HERE / "records", HERE / "RESULTS.md"
HEAD = """# Results, every table

Written by `python -m experiments report --tables` from the records in `records/`, not by hand; `±` is one standard
error. [The verdicts and errata](README.md) are on a page of their own. Every table names its command: {quick} of {all}
are of quick runs, which are smaller and noisier than the full ones. {missing}
"""


def keep(folder: Path, names: Sequence[str]) -> list[str]:
    """Copies the records of a folder, but no quick one over a full one. Returns the names of what it copied."""
    RECORDS.mkdir(exist_ok=True)
    kept = []
    for name in names:
        record, old = record_of(folder, name), record_of(RECORDS, name)
        if record is None or (is_quick(record) and old is not None and not is_quick(old)):
            continue
        record = {key: value for key, value in record.items() if key != "stamp"}
        record["command"] = shown_command(record["command"])
        (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        kept.append(name)
    return kept


def is_quick(record: Mapping[str, Any]) -> bool:
    """True if a record is of a quick run."""
    return "--quick" in record["command"].split()


def write() -> Path:
    """Writes the page from all records."""
    PAGE.write_text(markdown(RECORDS, experiments()))
    return PAGE


def markdown(folder: Path, about: Mapping[str, str]) -> str:
    """Formats the records of a folder as one page. `about` maps names of experiments to summaries."""
    items = [item for name in about if (item := item_of(folder, name, about[name], ""))]
    left_out = sorted(set(about) - {item["name"] for item in items})
    missing = f"No record yet: {', '.join(f'`{name}`' for name in left_out)}." if left_out else ""
    quick = sum(map(is_quick, items))
    parts = [HEAD.format(quick=quick, all=len(items), missing=missing).rstrip()]
    for family in FAMILIES:
        mine = [item for item in items if item["family"] == family]
        if mine:
            parts.append(f"## {paper(family).short}\n\n{paper(family).cite}.")
            parts += [section(item) for item in sorted(mine, key=lambda item: not is_of_paper(item["item"]))]
    return "\n\n".join(parts) + "\n"


def section(item: Mapping[str, Any]) -> str:
    """Formats one experiment: its table, its claims and notes, and how it was made."""
    claims = "\n".join(
        f"- {'Holds' if claim['holds'] else 'Fails'}: {claim['statement']}: {claim['measured']}"
        for claim in item["claims"]
    )
    made = f"`{item['command']}`: {duration(item['seconds'])}, {item['machine']}; {item['versions']}."
    parts = [f"### `{item['name']}`: {item['title']}", f"*{item['verdict'].capitalize()}.*", table(item["rows"])]
    return "\n\n".join(part for part in [*parts, claims, *item["notes"], made] if part)


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Formats rows of heading and cell as a table; columns of numbers are aligned to the right."""
    if not rows:
        return ""
    heads = list(rows[0])
    lines = [heads, ["---:" if numeric(rows, head) else "---" for head in heads], *(row.values() for row in rows)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
