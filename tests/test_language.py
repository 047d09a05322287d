"""The language of docstrings, comments and names: the part of the rules that a program can hold."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("jaxbandits", "experiments", "tests") for path in (ROOT / folder).rglob("*.py"))
# A description that needs the name beside it to be read, or that asks instead of saying.
OPENINGS = set(re.findall(r"\w+", "what how which by of where when whether that those with whom whose from"))
# A word, and the one to write instead.
WORDS = {
    r"but for": "except",
    r"besides": "also",
    r"in place of": "instead of",
    r"(that|those) of": "the thing's name",
    r"so (many|much) (pulls|rounds|runs|arms)": "n pulls",
    r"(is|are) let\b": "until",
    r"as a coin falls": "at random",
    r"hears?|heard|wants|wanted|forgets?|forgotten|dies|died|a word about": "reads, requires, discards, fails",
    r"(is|are) told of": "reports",
    r"the least (?!of\b)": "smallest",
    r"of (the )?least(?!.squares)": "smallest",
    r"at home": "in",
}
# Variables that are function words: they say nothing of what they hold.
VARIABLES = {"seen", "found", "left", "rest", "own", "place", "wanted"}
MOST = 5  # positional arguments of a call; a longer one says their names, unless it takes any number
ANY_NUMBER = {"zip", "einsum", "cond", "switch", "max", "min", "print", "Partial", "say"}
PROSE = re.compile(r"\b(" + "|".join(f"(?:{word})" for word in WORDS) + r")", re.IGNORECASE)


def described(tree):
    """Yields (line, True if it must begin with a verb, docstring); a test's may state the law that it shows."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            does = isinstance(node, ast.FunctionDef) and not node.name.startswith("test_")
            yield node.body[0].lineno, does, text


def comments(source):
    """Yields (line, text) of every comment that begins one: a line of a longer comment has one above it."""
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 or token.line[: token.start[1]].strip():
                yield token.start[0], token.string.lstrip("#: ")
            last = token.start[0] if not token.line[: token.start[1]].strip() else 0


def faults(path):
    """Yields what is wrong with a file, as "line: what"."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    for line, does, text in described(tree):
        first = re.sub(r"\W", "", text.split()[0]).lower()
        if first in OPENINGS or (does and not first.endswith("s") and not text.startswith("True if")):
            yield f"{line}: a docstring begins with {text.split()[0]!r}"
    for line, text in comments(source):
        if text.split() and text.split()[0].lower().strip(",:") in OPENINGS:
            yield f"{line}: a comment begins with {text.split()[0]!r}"
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    prose = [(node.lineno, node.value) for node in strings if " " in node.value] + list(comments(source))
    for line, text in prose:
        for match in PROSE.finditer(re.sub(r"`[^`]*`", "", text)):
            yield f"{line}: {match[0]!r}"
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else getattr(node, "arg", None)
        pair = isinstance(node, ast.Name) and re.search(r"left,( middle,)? right", lines[node.lineno - 1])
        if isinstance(node, (ast.Name, ast.arg)) and name in VARIABLES and not pair:
            yield f"{node.lineno}: a variable called {name!r}"
        if isinstance(node, ast.Call) and len(node.args) > MOST and not isinstance(node.func, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            if called not in ANY_NUMBER:
                yield f"{node.lineno}: a call of {called} with {len(node.args)} positional arguments"


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT).parts[:2] for path in FILES}))
def test_docstrings_comments_and_names_keep_the_rules(folder):
    inside = [path for path in FILES if path.relative_to(ROOT).parts[:2] == folder and path != Path(__file__)]
    assert not [f"{path.relative_to(ROOT)}:{fault}" for path in inside for fault in faults(path)]
