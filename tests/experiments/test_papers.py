"""The papers' files: their schema, the experiments that use them, and slips that are refused."""

from pathlib import Path

import numpy as np
import pytest

from experiments import FAMILIES, HERE, experiments, papers

GOOD = """
[paper]
short = "A."
cite = "A (2020)"
[[number]]
name = "table1"
what = "pulls"
where = "Table 1"
value = [[1, 2.5]]
[[erratum]]
where = "(1)"
printed = "a"
right = "b"
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_file_keeps_to_the_schema(family):
    paper = papers.paper(family)
    names = experiments()
    assert set(paper.in_error) <= set(names)
    for erratum in paper.errata:
        shown = erratum.shown_by
        assert not shown or shown in names or (HERE.parent / shown).is_file() or "(" in shown, shown
    source = "".join(path.read_text() for path in (HERE / family).glob("*.py"))
    for name in paper.numbers:
        assert name.partition(" ")[0] in source


@pytest.mark.parametrize(
    ("family", "name", "shape"),
    [
        ("linear", "table1 LinGapE", (7,)),
        ("fullbandit", "table1 it", (4,)),
        ("fullbandit", "table2 SAQM", (6,)),
        ("kcenter", "table1", (7, 2)),
        ("kcenter", "table2 DS-UCB", (8, 3)),
        ("kcenter", "table3", (8, 5)),
        ("kcenter", "table5", (12, 5)),
        ("kcenter", "table6", (5, 5)),
        ("kcenter", "table7", (8, 7)),
    ],
)
def test_printed_tables_have_all_numbers(family, name, shape):
    assert np.shape(papers.printed(family, name)) == shape


def test_printed_arms_add_up_to_their_total():
    for name in ("LinGapE", "XY-static", "XY-oracle"):
        *arms, total = papers.printed("linear", f"table1 {name}")
        assert abs(sum(arms) - total) <= 1


@pytest.mark.parametrize(
    ("old", "wrong"),
    [
        ('where = "Table 1"', ""),
        ('what = "pulls"', 'what = "pulls"\nunit = "1"'),
        ("[[1, 2.5]]", '"many"'),
        ("[[1, 2.5]]", "[]"),
        ("[[erratum]]", "[[slip]]"),
        ('short = "A."', "short = 1"),
        ('right = "b"', ""),
        ("[[erratum]]", '[[number]]\nname = "table1"\nwhat = ""\nwhere = ""\nvalue = 1\n[[erratum]]'),
    ],
)
def test_read_names_a_file_with_a_slip(old, wrong, tmp_path: Path):
    path = tmp_path / "paper.toml"
    path.write_text(GOOD)
    assert papers.read(path).numbers["table1"].value == [[1, 2.5]]
    assert papers.read(path).errata[0].shown_by == ""
    path.write_text(GOOD.replace(old, wrong))
    with pytest.raises(ValueError, match=r"paper\.toml"):
        papers.read(path)
