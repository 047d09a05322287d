"""Facts about the algorithms, read from the docstrings of their factories: guarantee, cost, precision, source."""

import importlib
import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

from jaxbandits.base import Algorithm

# Families in the order of the pages, with what each identifies.
FAMILIES = {
    "linear": "Linear bandits",
    "mab": "Arms without structure",
    "cpe": "Combinatorial decisions",
    "fullbandit": "Sums of rewards",
    "kcenter": "Greedy k-center",
    "kernel": "Kernel bandits",
}

MARKER = re.compile(r"\*\*([\w ]+?)\.?\*\*")  # name of a section that begins inside a paragraph
SENTENCE = re.compile(r"(?<=[.;])\s+(?=[A-Z`*]|float)")
PRECISION = re.compile(r"\bfloat(?:32|64)\b")


class Facts(NamedTuple):
    """Facts about an algorithm, as Markdown."""

    family: str  # name of the family's module
    name: str  # name of the factory
    summary: str  # first sentence of the docstring
    guarantee: str  # probability of error or regret that is proved, and where
    cost: str  # operations per round
    precision: str  # effect of float32, and the largest number of pulls; "" where the docstring names none
    source: str  # paper or program of origin


def is_factory(public: object) -> bool:
    """True if `public` builds an algorithm, but not from another one."""
    if not inspect.isfunction(public):
        return False
    signature = inspect.signature(public)
    return signature.return_annotation is Algorithm and "algorithm" not in signature.parameters


def documented_order(family: str) -> list[str]:
    """Returns the public names of a module: those in the tables of its page first, in the order of the tables."""
    module = importlib.import_module(f"jaxbandits.{family}")
    text = inspect.getdoc(module) or ""
    rows = " ".join(line for line in text.splitlines() if line.startswith("| `"))
    positions = {name: position for position, name in reversed(list(enumerate(re.findall(r"`(\w+)`", rows))))}
    return sorted(module.__all__, key=lambda name: (positions.get(name, len(rows)), name))


def factories(family: str) -> dict[str, Callable[..., Algorithm]]:
    """Returns the factories of a family by name, in the order of its page."""
    module = importlib.import_module(f"jaxbandits.{family}")
    names = [name for name in documented_order(family) if is_factory(getattr(module, name))]
    return {name: getattr(module, name) for name in names}


def sections(text: str) -> dict[str, str]:
    """Returns the marked sections of a docstring by name, in one line each.

    A section begins with a name in bold, or with "Source:", and ends with its paragraph or at the next name. Two names
    joined by "and" share a section.
    """
    result: dict[str, str] = {}
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        if line.startswith("Source:"):
            result["Source"] = line.removeprefix("Source:").strip()
        parts = MARKER.split(line)
        shared: list[str] = []
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            shared.append(name)
            if body.strip() not in ("and", ","):
                result |= dict.fromkeys(shared, body.strip())
                shared = []
    return result


def precision_of(text: str, marked: dict[str, str]) -> str:
    """Returns what a docstring says about float32, float64 and the largest number of pulls."""
    said = []
    if "float32" in marked:
        said.append(f"float32{'' if marked['float32'].startswith(':') else ' '}{marked['float32']}")
    else:
        # Sections may advise a precision in passing. The types of arguments and results are no advice.
        _, _, after = text.partition("**Guarantee**")
        prose = " ".join(re.split(r"\n(?:Source|Example):", after)[0].split())
        said += [MARKER.sub("", each).lstrip(":. ") for each in SENTENCE.split(prose) if PRECISION.search(each)]
    if "Limit" in marked:
        said.append(f"Limit{marked['Limit']}")
    return " ".join(said)


def facts_of(family: str, name: str) -> Facts:
    """Returns the facts about a factory; "" for a section that its docstring lacks."""
    text = inspect.getdoc(getattr(importlib.import_module(f"jaxbandits.{family}"), name)) or ""
    marked = sections(text)
    return Facts(
        family=family,
        name=name,
        summary=" ".join(text.split("\n\n")[0].split()),
        guarantee=marked.get("Guarantee", "").lstrip(":. "),
        cost=marked.get("Cost", "").lstrip(":. "),
        precision=precision_of(text, marked),
        source=marked.get("Source", ""),
    )


def all_facts() -> list[Facts]:
    """Returns the facts about all public factories, family by family."""
    return [facts_of(family, name) for family in FAMILIES for name in factories(family)]
