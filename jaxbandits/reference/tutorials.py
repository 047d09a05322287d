"""Tutorials: scripts in the percent format, executed cell by cell, with their output and pictures.

`# %% [markdown]` begins a cell of comments, `# %%` a cell of code. All cells of a script share one namespace, as in a
notebook. The script runs as `__main__` in a process of its own. Its results are stored, and a second call reads them.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jaxbandits

MARK = re.compile(r"^# %%(.*)$")  # first line of a cell
RUNNER = Path(__file__).with_name("cells.py")


class Cell(NamedTuple):
    """Part of a script."""

    is_text: bool  # True if the cell is Markdown in comments
    source: str  # Markdown without comment signs, or code
    line: int  # number of its first line in the script, from 1


class Output(NamedTuple):
    """Results of a cell of code."""

    text: str = ""  # printed lines, followed by the value of the last expression
    figures: tuple[str, ...] = ()  # PNG files as base64
    error: str = ""  # traceback of a cell that failed


class Tutorial(NamedTuple):
    """Script with its results."""

    path: Path  # script
    title: str  # first heading of the Markdown
    summary: str  # first paragraph below the heading
    cells: tuple[Cell, ...]
    outputs: tuple[Output | None, ...]  # one per cell; None for a cell that was not executed
    failure: str  # file, cell and error of a script that failed; otherwise ""


def parse(text: str) -> tuple[Cell, ...]:
    """Splits a script into cells; lines before the first mark are a cell of code, except a module docstring.

    A docstring at the beginning is a cell of Markdown.

    Args:
        text: script in the percent format.

    Returns:
        The cells that are not empty.
    """
    cells: list[Cell] = []
    is_text, begin, lines = False, 1, []

    def close() -> None:
        # Blank lines at the ends belong to no cell.
        skipped = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
        source = "\n".join(lines[skipped:]).rstrip()
        if not source:
            return
        if is_text:
            cells.append(Cell(True, re.sub(r"(?m)^# ?", "", source), begin + skipped))
        elif not cells and (match := re.match(r'r?"""(.*?)"""\s*', source, re.DOTALL)):
            cells.append(Cell(True, match[1].strip(), begin + skipped))
            if code := source[match.end() :]:
                cells.append(Cell(False, code, begin + skipped + source[: match.end()].count("\n")))
        else:
            cells.append(Cell(False, source, begin + skipped))

    for number, line in enumerate(text.splitlines(), 1):
        if match := MARK.match(line):
            close()
            is_text, begin, lines = "[markdown]" in match[1], number + 1, []
        else:
            lines.append(line)
    close()
    return tuple(cells)


def fingerprint(path: Path) -> str:
    """Returns a hash of everything that decides a script's results: the script, data beside it, and the package."""
    digest = hashlib.sha256(path.read_bytes())
    data = [each for each in path.parent.iterdir() if each.is_file() and each.suffix not in (".py", ".pyc")]
    package = Path(jaxbandits.__file__).parent
    for each in [*sorted(data), *sorted(package.rglob("*.py")), *sorted(package.rglob("*.json"))]:
        # Pages of the reference do not change what a script prints; the runner does.
        if each.parent.name != "reference" or each == RUNNER:
            digest.update(each.name.encode() + b"\0" + each.read_bytes())
    return digest.hexdigest()


def execute(path: Path, cells: tuple[Cell, ...], *, root: Path | None = None) -> list[Output]:
    """Executes the cells of code in a new process, up to the first one that fails.

    Args:
        path: script.
        cells: cells of the script.
        root: folder in which the script runs. If None, the folder of the script.

    Returns:
        Outputs of the executed cells of code, in their order.
    """
    code = [[cell.line, cell.source] for cell in cells if not cell.is_text]
    environment = os.environ | {"MPLBACKEND": "agg"}
    # A script imports the package that writes these pages.
    paths = [str(Path(jaxbandits.__file__).parents[1]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    finished = subprocess.run(
        [sys.executable, str(RUNNER), str(path.resolve())],
        input=json.dumps(code),
        capture_output=True,
        text=True,
        cwd=root or path.parent,
        env=environment,
        check=False,
    )
    try:
        results = json.loads(finished.stdout)
    except json.JSONDecodeError:
        lines = finished.stderr.strip().splitlines()[-20:]
        return [Output(error="\n".join([*lines, f"The process ended with status {finished.returncode}."]))]
    return [Output(each["text"], tuple(each["figures"]), each["error"]) for each in results]


def title_of(cells: tuple[Cell, ...], fallback: str) -> tuple[str, str]:
    """Returns the first heading and the first paragraph below it."""
    text = "\n\n".join(cell.source for cell in cells if cell.is_text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    headings = [part.lstrip("# ") for part in paragraphs if part.startswith("#")]
    plain = [part for part in paragraphs if not part.startswith(("#", "|", "-", "`" * 3))]
    if not headings and plain:
        # A docstring begins with a sentence that serves as the title.
        first, *plain = plain
        headings = [first.rstrip(".")]
    return (headings or [fallback])[0], (plain or [""])[0]


def read(path: Path, stored: Path, *, run: bool = True, root: Path | None = None) -> Tutorial:
    """Returns a tutorial with its results, from the store if the script and the package are unchanged.

    Args:
        path: script in the percent format.
        stored: folder of results of earlier calls.
        run: if False, a script without stored results is not executed.
        root: folder in which the script runs. If None, the folder of the script.

    Returns:
        The tutorial.
    """
    cells = parse(path.read_text())
    title, summary = title_of(cells, path.stem.replace("_", " "))
    file = stored / f"{path.stem}.json"
    mark = fingerprint(path)
    outputs: list[Output] = []
    if file.is_file() and (record := json.loads(file.read_text()))["fingerprint"] == mark:
        outputs = [Output(each[0], tuple(each[1]), each[2]) for each in record["outputs"]]
    elif run:
        begin = time.monotonic()
        outputs = execute(path, cells, root=root)
        print(f"executed: {path.name}, {time.monotonic() - begin:.0f} s")
        if not any(output.error for output in outputs):
            stored.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"fingerprint": mark, "outputs": outputs}))
    queue = iter(outputs)
    placed = tuple(None if cell.is_text else next(queue, None) for cell in cells)
    failure = ""
    for number, (cell, output) in enumerate(zip(cells, placed, strict=True), 1):
        if output and output.error:
            failure = f"{path.name}, cell {number} (line {cell.line}): {output.error.strip().splitlines()[-1]}"
    return Tutorial(path=path, title=title, summary=summary, cells=cells, outputs=placed, failure=failure)
