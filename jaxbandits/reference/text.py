"""Text of docstrings and READMEs as HTML: formulas, links, tables."""

import re
from collections.abc import Callable, Mapping

# A superscript: a number, a word, or a group in brackets, of which the outer pair is not shown.
POWER = re.compile(r"(?<=[\w)\]|])\^(?:\{([^{}]*)\}|\(([^()]*)\)|(-?\d+(?:\.\d+)?|-?\w+))")
SYMBOLS = "[A-Za-z]|mu|sigma|lambda|gamma|theta|beta|eta|nu|rho|tau|sum|max|min|argmax|argmin|log"
INDEX = re.compile(rf"(?:(?<=\|)|\b({SYMBOLS}))_(?:\{{([^{{}}]*)\}}|([A-Za-z]?\d+|[A-Za-z])\b)")
SIGNS = {"&lt;=": "≤", "&gt;=": "≥", " -&gt; ": " → ", " +- ": " ± ", "-+": "∓", "!=": "≠"}
TAG = re.compile(r"(<[^>]+>)")
CODE = re.compile(r"<(/?)(?:code|pre|svg|script|style)\b")


def outside_code(html: str, change: Callable[[str], str]) -> str:
    """Applies a function to the text of a piece of HTML, except to tags and to code."""
    parts, depth = [], 0
    for part in TAG.split(html):
        if part.startswith("<"):
            if match := CODE.match(part):
                depth += -1 if match[1] else 1
            parts.append(part)
        else:
            parts.append(part if depth else change(part))
    return "".join(parts)


def set_formulas(html: str) -> str:
    """Sets powers, indices and signs of plain-text formulas: x_i becomes an index, m^2 a power, <= one sign."""

    def change(text: str) -> str:
        for sign, set_sign in SIGNS.items():
            text = text.replace(sign, set_sign)
        text = re.sub(r"\bsqrt\(", "√(", text)
        # The inner ones come first: an index may stand in a power, and a power in an index.
        for _ in range(2):
            text = INDEX.sub(lambda match: f"{match[1] or ''}<sub>{match[2] or match[3]}</sub>", text)
            text = POWER.sub(lambda match: f"<sup>{match[1] or match[2] or match[3]}</sup>", text)
        return text

    return outside_code(html, change)


def link_names(html: str, urls: Mapping[str, str], *, family: str = "", root: str = "") -> str:
    """Links names in code to their pages.

    Args:
        html: text with names in `<code>`.
        urls: address of each dotted public name, from the folder of the reference.
        family: module in which a bare name is looked for first.
        root: path from the page to the folder of the reference.

    Returns:
        The text with links.
    """

    def link(match: re.Match[str]) -> str:
        name = match[1].removesuffix("()")
        for prefix in (f"jaxbandits.{family}.", "jaxbandits.", ""):
            if url := urls.get(prefix + name):
                return f'<a href="{root}{url}"><code>{match[1]}</code></a>'
        return match[0]

    return re.sub(r"(?<!\">)<code>([\w.]+(?:\(\))?)</code>", link, html)


def scrollable(html: str) -> str:
    """Puts each table into a box that scrolls by itself."""
    return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
