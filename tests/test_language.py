"""The language of docstrings, comments, messages and names: the part of the rules that a program can check."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("jaxbandits", "experiments", "tests") for path in (ROOT / folder).rglob("*.py"))
FOLDERS = sorted({path.relative_to(ROOT).parts[:2] for path in FILES})
# First words of a description that asks, or that needs the name beside it.
OPENINGS = set(re.findall(r"\w+", "what how which by of where when whether that those with whom whose from"))
# Phrases, and the ones to write instead.
PHRASES = {
    r"but for": "except",
    r"besides": "also",
    r"in place of": "instead of",
    r"(that|those) of": "the thing's name",
    r"so (many|much) (pulls|rounds|runs|arms)": "n pulls",
    r"(is|are) let\b": "until",
    r"as a coin falls": "at random",
    r"hears?|heard|wants|wanted|forgets?|forgotten|dies|died": "reads, requires, discards, fails",
    r"(is|are) told of": "reports",
    r"the least (?!of\b|squares)": "smallest",
    r"of (the )?least(?!.squares)": "smallest",
    r"at home": "in",
}
PHRASE = re.compile(r"\b(" + "|".join(f"(?:{phrase})" for phrase in PHRASES) + r")", re.IGNORECASE)
VARIABLES = {"seen", "found", "left", "rest", "own", "place", "wanted"}  # function words that name nothing
LONGEST = 5  # positional arguments; a longer call says their names, unless the function takes any number
ANY_NUMBER = {"zip", "einsum", "cond", "switch", "max", "min", "print", "Partial", "say"}


def docstrings(tree):
    """Yields (line, True if it must begin with a verb, text); a test's docstring may state the law that it shows."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            needs_verb = isinstance(node, ast.FunctionDef) and not node.name.startswith("test_")
            yield node.body[0].lineno, needs_verb, text


def comments(source):
    """Yields (line, text) of comments, except lines that continue a comment above."""
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            is_trailing = bool(token.line[: token.start[1]].strip())
            if is_trailing or token.start[0] != last + 1:
                yield token.start[0], token.string.lstrip("#: ")
            last = 0 if is_trailing else token.start[0]


def faults(path):
    """Yields the faults of a file, as "line: fault"."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    for line, needs_verb, text in docstrings(tree):
        first = re.sub(r"\W", "", text.split()[0]).lower()
        if first in OPENINGS or (needs_verb and not first.endswith("s") and not text.startswith("True if")):
            yield f"{line}: a docstring begins with {text.split()[0]!r}"
    for line, text in comments(source):
        if text.split() and text.split()[0].lower().strip(",:") in OPENINGS:
            yield f"{line}: a comment begins with {text.split()[0]!r}"
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for line, text in [(node.lineno, node.value) for node in strings if " " in node.value] + list(comments(source)):
        for match in PHRASE.finditer(re.sub(r"`[^`]*`", "", text)):
            yield f"{line}: {match[0]!r}"
    fields = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields
        name = node.id if is_stored else node.arg if isinstance(node, ast.arg) else None
        if name in VARIABLES and not re.search(r"left,( middle,)? right", lines[node.lineno - 1]):
            yield f"{node.lineno}: a variable called {name!r}"
        if isinstance(node, ast.Call) and len(node.args) > LONGEST and not isinstance(node.func, ast.Call):
            called = ast.unparse(node.func).split(".")[-1]
            if called not in ANY_NUMBER:
                yield f"{node.lineno}: a call of {called} with {len(node.args)} positional arguments"


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_language_of_a_folder(folder):
    inside = [path for path in FILES if path.relative_to(ROOT).parts[:2] == folder and path != Path(__file__)]
    assert [f"{path.relative_to(ROOT)}:{fault}" for path in inside for fault in faults(path)] == []


def test_language_finds_planted_faults(tmp_path):
    path = tmp_path / "planted.py"
    path.write_text(
        '"""What a file holds."""\n\n\ndef f(x):\n    """The value, in place of a name."""\n'
        "    found = g(1, 2, 3, 4, 5, x)  # of f\n    return found\n"
    )
    assert [fault.partition(": ")[2] for fault in faults(path)] == [
        "a docstring begins with 'What'",
        "a docstring begins with 'The'",
        "a comment begins with 'of'",
        "'in place of'",
        "a variable called 'found'",
        "a call of g with 6 positional arguments",
    ]
