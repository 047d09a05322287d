"""Texts of numbers with their errors, and of aligned tables, for a terminal, Markdown and LaTeX."""

import math
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

Style = Literal["text", "markdown", "latex"]

EMPTY = "-"  # text of a number that is not known
WIDTH = 120  # characters of a line of a printed summary
# Powers of ten of the numbers that are written without an exponent.
SMALLEST_POWER, LARGEST_POWER = -4, 6
PLUS_MINUS = {"text": "+-", "markdown": "±", "latex": r"\pm"}
ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
ESCAPES |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
ESCAPES |= {"[": "{[}", "*": "{*}"}  # at the start of a line both would belong to the end of the line before
ESCAPES |= {character: f"\\{character}" for character in "&%$#_{}"}
NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?")


def decimals(error: float) -> int:
    """Returns the decimals that show two significant digits of a positive number; negative if it is 100 or more."""
    digits = 1 - math.floor(math.log10(error))
    # 0.0996 is rounded to 0.10.
    return digits - 1 if round(error, digits) >= 10.0 ** (2 - digits) else digits


def fixed(value: float, digits: int) -> str:
    """Formats a number with so few decimals that it has no digits beyond its error."""
    return f"{round(value, digits) + 0.0:.{max(digits, 0)}f}"


def number(text: str, style: Style) -> str:
    """Sets a number in math mode for LaTeX, where its minus is no hyphen."""
    if style != "latex":
        return text
    digits, _, power = text.partition("e")
    return rf"${digits} \times 10^{{{int(power)}}}$" if power else f"${digits}$"


def with_error(mean: float, se: float, style: Style = "text") -> str:
    """Formats a mean and its standard error with two significant digits of the error.

    Example:
        >>> with_error(7312.4, 83.2), with_error(1.2345e9, 2.5e7)
        ('7312 +- 83', '(1.234 +- 0.025)e9')
    """
    if not math.isfinite(mean):
        return EMPTY if math.isnan(mean) else str(mean)
    if not (math.isfinite(se) and se > 0):
        return number(f"{mean:.6g}", style)
    sign, power = PLUS_MINUS[style], math.floor(math.log10(max(abs(mean), se)))
    if SMALLEST_POWER <= power <= LARGEST_POWER:
        digits = decimals(se)
        text = f"{fixed(mean, digits)} {sign} {fixed(se, digits)}"
        return f"${text}$" if style == "latex" else text
    mean, se = mean / 10.0**power, se / 10.0**power
    digits = decimals(se)
    text = f"({fixed(mean, digits)} {sign} {fixed(se, digits)})"
    return rf"${text} \times 10^{{{power}}}$" if style == "latex" else f"{text}e{power}"


def with_interval(value: float, low: float, high: float, style: Style = "text") -> str:
    """Formats a number and its interval with two significant digits of half the interval's width.

    Example:
        >>> with_interval(0.03, 0.00623, 0.0852)
        '0.030 [0.006, 0.085]'
    """
    if math.isnan(value):
        return EMPTY
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return number(f"{value:.4g}", style)
    digits = decimals((high - low) / 2)
    # Math mode drops plain spaces.
    space = r"\ " if style == "latex" else " "
    text = f"{fixed(value, digits)}{space}[{fixed(low, digits)}, {fixed(high, digits)}]"
    return f"${text}$" if style == "latex" else text


def labels(values: np.ndarray) -> list[str]:
    """Formats the values of a column with as few digits, at least 4, as tell them apart."""
    if values.dtype.kind not in "fV":
        return [str(value) for value in values.tolist()]
    numbers = values.astype(float).tolist()
    for digits in range(4, 17):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len({str(number) for number in numbers}):
            return texts
    return [repr(number) for number in numbers]


def escaped(text: str) -> str:
    """Escapes the characters that LaTeX reads as commands. A number is set in math mode."""
    if NUMBER.fullmatch(text):
        return number(text, "latex")
    return "".join(ESCAPES.get(character, character) for character in text)


def aligned(header: Sequence[str], body: Sequence[Sequence[str]], *, names: int) -> list[str]:
    """Returns the lines of a table whose first columns, which name the rows, are aligned to the left."""
    lines = [header, *body]
    widths = [max(len(line[n]) for line in lines) for n in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if n < names else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown(header: Sequence[str], body: Sequence[Sequence[str]], *, names: int) -> str:
    """Returns a table in Markdown, with the first columns, which name the rows, aligned to the left."""
    marks = [":--"] * names + ["--:"] * (len(header) - names)
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], marks, *lines[1:]))


def latex(header: Sequence[str], body: Sequence[Sequence[str]], *, names: int) -> str:
    """Returns a table in LaTeX, as a `tabular` with the rules of booktabs. Cells after the names are LaTeX already."""
    kinds = "l" * names + "r" * (len(header) - names)
    body = [[*map(escaped, line[:names]), *line[names:]] for line in body]
    heading, *lines = [rf"{' & '.join(line)} \\" for line in ([*map(escaped, header)], *body)]
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", heading, r"\midrule", *lines]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])
