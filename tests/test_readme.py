"""The Python blocks of the README run as they stand."""

import re
from pathlib import Path

import pytest

from experiments import experiments

README = Path(__file__).resolve().parent.parent / "README.md"
PAGES = [README, *sorted((README.parent / "experiments").glob("*.md"))]
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_python_blocks_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    printed = re.search(r"```\n(delta +TTUCB.*?)```", README.read_text(), re.DOTALL)
    # Track-and-Stop's plans round otherwise in the programs of the tests, which XLA does not optimise.
    table = [[re.split(" {2,}", line) for line in text.splitlines()] for text in (printed[1], shown)]
    assert [(row[0], row[1], row[3]) for row in table[0]] == [(row[0], row[1], row[3]) for row in table[1][-4:]]
    assert len(names["results"]) == 1800


def test_readme_is_short():
    assert len(README.read_text().splitlines()) <= 180


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_relative_links_exist(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    relative = [link for link in links if not link.startswith("http")]
    assert relative
    assert [link for link in relative if not (page.parent / link).exists()] == []


def test_commands_name_experiments_that_exist():
    commands = set()
    families = "mab|linear|likelihood|fullbandit|kcenter|cpe|semibandit|kernel"
    for page in PAGES:
        commands |= set(re.findall(rf"`((?:{families})_\w+)[` ]", page.read_text()))
    assert len(commands) > 15
    assert commands <= set(experiments())
