"""The page of all experiments: its text, and a browser that shows and sorts it without requests to anyone."""

import json
import shutil

import numpy as np
import pytest

from experiments import experiments, page
from experiments.files import save
from experiments.page import items, tables
from experiments.report import Claim, Line, Report, record

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAMES = {
    "linear_table1": "Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm.",
    "linear_theorem3": "Theorem 3 of Xu, Honda, Sugiyama (2018): its bound is false.",
    "kernel_beta": "How much the regret depends on beta, which the paper tunes <&>.",
}


def written(folder):
    """Writes the page of three experiments that have run, with numbers that are easy to tell apart."""
    lines = [
        Line("ten", 10.0, 1.234, 5, printed=11.0, printed_se=1.0, spread="one run's"),
        Line("two thousand", 2000.0, 1.0, 7, censored=2, printed=1000.0),
        Line("seventy", 70.0, 2.0, 6),
    ]
    reports = {
        "linear_table1": Report("Pulls", lines, [Claim("a claim", "measured so", True)], {"x": np.arange(3)}, draw),
        "linear_theorem3": Report("A bound", [], [Claim("H_0 <= 72 H'", "116.7", False)], {"x": np.arange(3)}, None),
        "kernel_beta": Report(
            "beta", [], [Claim("<b>flat</b>", "no", False)], {"x": np.arange(3)}, draw, grid=[{"": "x", "b": "1"}]
        ),
    }
    for (name, report), seconds in zip(reports.items(), (125.0, 7.0, 61.0), strict=True):
        save(report, name, folder)
        run = {
            "command": f"python -m experiments {name} --quick --out /a/b --store /c --data /d",
            "seconds": seconds,
            "machine": "2 x cpu",
            "pulls": 10**9,
        }
        (folder / f"{name}.json").write_text(json.dumps(record(report) | run | {"versions": "jax 0"}))
    return page.build(folder, list(NAMES), NAMES, {}, quick=True)


def draw(figure):
    figure.subplots().plot([1, 2])


def test_page_has_verdicts_figures_and_escaped_text(tmp_path):
    text = written(tmp_path).read_text()
    assert text.count('class="verdict warn">Paper in error.') == 1
    assert "Reproduced in part." in text  # one number of two agrees, and the claim holds
    assert "Does not hold." in text
    assert "7 (2 censored)" in text
    assert "2 min 5 s" in text
    assert "10 ± 1.2" in text  # a standard error has two digits
    assert "&lt;b&gt;flat&lt;/b&gt;" in text
    assert "<b>flat" not in text
    assert "T* kl" not in text  # no line has a bound
    assert "python -m experiments linear_table1 --quick --data DIR<" in text
    assert "/a/b" not in text


def test_verdicts():
    assert items.verdict_of("linear_table1", 2, 2, [True], True) == "reproduced"
    assert items.verdict_of("linear_table1", 0, 2, [False], True) == "not reproduced"
    assert items.verdict_of("cpe_gap", 0, 0, [True], False) == "holds"
    assert items.verdict_of("kernel_public_code", 0, 0, [], False) == "measured"


@pytest.mark.parametrize(
    ("name", "about", "title", "shown"),
    [
        (
            "fullbandit_figure3",
            "Figure 3 of Kuroki et al. (2020): pulls.",
            "Figure 3 of Kuroki et al. (2020): pulls",
            "Figure 3",
        ),
        ("fullbandit_replay", "Table 2 with real answers: pulls.", "Table 2 with real answers", "replay"),
        ("fullbandit_error_rate", "Error rates.", "Error rates", "error rate"),
        ("kcenter_figure1", "The figure on C.", "DS-UCB against C", "Figure 1"),
    ],
)
def test_items_of_the_paper_have_its_names(name, about, title, shown, tmp_path):
    run = {"seconds": 1, "pulls": 0}
    (tmp_path / f"{name}.json").write_text(json.dumps(record(Report(title, [], [], {}, None)) | run))
    item = items.item_of(tmp_path, name, about, "")
    assert item["item"] == shown
    assert item["title"] == title.removeprefix("Figure 3 of Kuroki et al. (2020): ")


def test_the_verdict_is_in_the_second_column():
    line = json.loads(json.dumps(record(Report("", [Line("x", np.nan, np.nan, printed=1.0)], [], {}, None))))
    assert list(items.rows_of(line)[0].items())[:2] == [("quantity", "x"), ("verdict", "differs")]
    grid = record(Report("", [], [], {}, None, grid=[{"n": "1", "paper": "2 +- 1", "verdict": "agrees"}]))
    shown = items.typeset(items.rows_of(grid))
    assert list(shown[0].items()) == [("n", "1"), ("verdict", "agrees"), ("paper", "2 ± 1")]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")
def test_in_a_browser(tmp_path):
    from playwright.sync_api import sync_playwright

    address = written(tmp_path).as_uri()
    messages, requests = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 390, "height": 800})
        tab.on("console", lambda message: messages.append(message.text))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(address)

        assert tab.locator("#summary tbody tr").count() == len(NAMES)
        figures = tab.locator("figure")
        assert figures.count() == 2
        for index in range(2):
            assert figures.nth(index).locator("svg").bounding_box()["width"] > 300
            assert len(figures.nth(index).get_attribute("aria-label")) > 20

        def column(table, index):
            return tab.locator(f"{table} tbody tr").evaluate_all(
                "(rows, index) => rows.map(row => row.cells[index].textContent.trim())", index
            )

        times = tab.locator("#summary thead button", has_text="time")
        times.click()
        assert column("#summary", 6) == ["7 s", "1 min 1 s", "2 min 5 s"]
        times.click()
        assert column("#summary", 6) == ["2 min 5 s", "1 min 1 s", "7 s"]
        assert tab.locator("#summary th[aria-sort=descending]").count() == 1
        tab.locator("#linear_table1 thead button", has_text="ours").first.click()
        assert column("#linear_table1 table", 0) == ["ten", "seventy", "two thousand"]

        # A phone's screen shows the verdict and the navigation.
        for table in ("#summary", "#linear_table1 table"):
            cell = tab.locator(f"{table} tbody tr td.verdict").first.bounding_box()
            assert cell["x"] + cell["width"] <= 390
        tab.locator("#kernel_beta").scroll_into_view_if_needed()
        assert tab.locator("nav").bounding_box()["y"] == 0

        # A phone shows the page without scrolling sideways; wide tables scroll by themselves.
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        background = "getComputedStyle(document.body).backgroundColor"
        tab.emulate_media(color_scheme="light")
        light = tab.evaluate(background)
        tab.emulate_media(color_scheme="dark")
        assert tab.evaluate(background) != light
        ink = "getComputedStyle(document.querySelector('figure text')).fill"
        assert tab.evaluate(ink) == "rgb(232, 232, 232)"
        browser.close()
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_tables_prefer_records_of_full_size(tmp_path, monkeypatch):
    written(tmp_path)
    record = json.loads((tmp_path / "kernel_beta.json").read_text())
    command = "python -m experiments kernel_beta --out /a/b"
    (tmp_path / "kernel_beta.json").write_text(json.dumps(record | {"command": command, "stamp": "s"}))
    monkeypatch.setattr(tables, "RECORDS", tmp_path / "records")
    assert tables.keep(tmp_path, list(NAMES)) == list(NAMES)
    (tmp_path / "kernel_beta.json").write_text(json.dumps(record))
    assert tables.keep(tmp_path, ["kernel_beta"]) == []  # a quick run does not replace a full one
    assert "/a/b" not in (tmp_path / "records" / "kernel_beta.json").read_text()
    text = tables.markdown(tmp_path / "records", NAMES | {"linear_width": "Widths."})
    assert "2 of 3\nare of quick runs" in text
    assert "No record yet: `linear_width`." in text
    assert "### `kernel_beta`: beta" in text
    assert "- Fails: <b>flat</b>: no" in text
    assert "`python -m experiments kernel_beta`: 1 min 1 s, 2 x cpu; jax 0." in text


def test_result_tables_are_the_ones_of_the_records():
    assert tables.PAGE.read_text() == tables.markdown(tables.RECORDS, experiments())
