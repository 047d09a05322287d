"""Printed numbers and errors of the papers: a file `paper.toml` in the folder of every family.

`[paper]` names the paper, a `[[number]]` holds printed numbers under a name, an `[[erratum]]` a slip or a claim that
does not hold. `experiments.page` shows the errata, the experiments read the numbers.
"""

import functools
import itertools
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import HERE


class Number(NamedTuple):
    """Printed numbers."""

    name: str  # key by which the experiments read them
    value: Any  # a number, or nested lists of numbers
    what: str  # meaning and unit
    where: str  # table, figure or section


class Erratum(NamedTuple):
    """One slip, or one claim that does not hold."""

    where: str
    printed: str
    right: str
    shown_by: str = ""  # an experiment, or a test


class Paper(NamedTuple):
    """One paper."""

    short: str  # its authors in short
    cite: str
    numbers: dict[str, Number]
    errata: Sequence[Erratum]
    in_error: Sequence[str] = ()  # experiments that show an error of the paper instead of a number that differs


def read(path: Path) -> Paper:
    """Reads a file and checks it against the schema.

    Raises:
        ValueError: an entry is missing, unknown, of another type, or repeated.
    """
    document = tomllib.loads(path.read_text())
    try:
        numbers = [Number(**entry) for entry in document.pop("number", [])]
        errata = [Erratum(**entry) for entry in document.pop("erratum", [])]
        paper = Paper(numbers={n.name: n for n in numbers}, errata=errata, **document.pop("paper"))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    texts = [paper.short, paper.cite, *paper.in_error, *itertools.chain(*errata)]
    texts += itertools.chain(*((n.name, n.what, n.where) for n in numbers))
    wrong = [*document, *(repr(text) for text in texts if not isinstance(text, str))]
    wrong += [f"{n.name}: {n.value!r}" for n in numbers if not _is_numbers(n.value)]
    if wrong or len(paper.numbers) < len(numbers):
        raise ValueError(f"{path}: {', '.join(wrong) or 'a name is repeated'}")
    return paper


@functools.cache
def paper(family: str) -> Paper:
    """Reads the paper of a family."""
    return read(HERE / family / "paper.toml")


def printed(family: str, name: str) -> Any:
    """Returns printed numbers as the file holds them."""
    return paper(family).numbers[name].value


def printed_by_place(family: str, name: str) -> dict[tuple[int, int], Any]:
    """Returns the printed value of every row, by (n, k): a number, or a tuple of several."""
    rows = printed(family, name)
    return {(n, k): values[0] if len(values) == 1 else tuple(values) for n, k, *values in rows}


def _is_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_numbers, value))
    return isinstance(value, (int, float)) and not isinstance(value, bool)
