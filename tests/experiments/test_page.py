"""The page of all experiments: what stands on it, and that a browser shows, sorts and keeps it to itself."""

import json
import shutil
from argparse import Namespace

import numpy as np
import pytest

from experiments import page
from experiments.report import Claim, Line, Report, record, save, whole

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NAMES = {
    "linear_table1": "Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm.",
    "linear_theorem3": "Theorem 3 of Xu, Honda, Sugiyama (2018): its bound is false.",
    "kernel_beta": "How much the regret depends on beta, which the paper tunes <&>.",
}


def written(folder):
    """Three experiments that have run, with numbers that are easy to tell apart."""
    lines = [
        Line("ten", 10.0, 1.0, 5, printed=11.0),
        Line("two thousand", 2000.0, 1.0, 7, censored=2, printed=1000.0),
        Line("seventy", 70.0, 2.0, 6),
    ]
    reports = {
        "linear_table1": Report("Pulls", lines, [Claim("a claim", "measured so", True)], {"x": np.arange(3)}, draw),
        "linear_theorem3": Report("A bound", [], [Claim("H_0 <= 72 H'", "116.7", False)], {"x": np.arange(3)}, None),
        "kernel_beta": Report(
            "beta", [], [Claim("<b>flat</b>", "no", False)], {"x": np.arange(3)}, draw, grid=(("", "b"), [("x", "1")])
        ),
    }
    for (name, report), seconds in zip(reports.items(), (125.0, 7.0, 61.0), strict=True):
        save(report, name, folder)
        told = {"command": f"python -m experiments {name}", "seconds": seconds, "machine": "2 x cpu", "pulls": 10**9}
        (folder / f"{name}.json").write_text(json.dumps(record(report) | told | {"versions": "jax 0"}))
    return page.build(folder, list(NAMES), NAMES, {}, quick=True)


def draw(figure):
    figure.subplots().plot([1, 2])


def test_verdicts(tmp_path):
    text = written(tmp_path).read_text()
    assert text.count('class="verdict error">Paper in error.') == 1
    assert "Reproduced in part." in text  # one number of two agrees, and the claim holds
    assert "Does not hold." in text
    assert "7 (2 censored)" in text
    assert "2 min 5 s" in text
    assert "&lt;b&gt;flat&lt;/b&gt;" in text
    assert "<b>flat" not in text
    assert page.verdict_of("linear_table1", 2, 2, [True], is_of_paper=True) == "reproduced"
    assert page.verdict_of("linear_table1", 0, 2, [False], is_of_paper=True) == "not reproduced"
    assert page.verdict_of("cpe_gap", 0, 0, [True], is_of_paper=False) == "holds"
    assert page.verdict_of("kernel_public_code", 0, 0, [], is_of_paper=False) == "measured"


@pytest.mark.parametrize(
    ("name", "about", "title", "shown"),
    [
        (
            "fullbandit_figure3",
            "Figure 3 of Kuroki et al. (2020): pulls.",
            "Figure 3 of Kuroki et al. (2020): pulls",
            3,
        ),
        ("fullbandit_replay", "Table 2 with real answers: pulls.", "Table 2 with real answers", None),
        ("kcenter_figure1", "The figure on C.", "DS-UCB against C", 1),
    ],
)
def test_what_the_paper_has_is_named_as_there(name, about, title, shown, tmp_path):
    (tmp_path / f"{name}.json").write_text(
        json.dumps(record(Report(title, [], [], {}, None)) | {"seconds": 1, "pulls": 0})
    )
    item = page.item_of(tmp_path, name, about, "")
    assert item["item"] == (f"Figure {shown}" if shown else "replay")
    assert item["title"] == title.removeprefix("Figure 3 of Kuroki et al. (2020): ")


def test_plus_and_minus_are_one_sign():
    claims = [{"statement": "1 +- 2", "measured": "3", "holds": True}]
    assert page.typeset([["", "a"], [["x", "1 +- 2"]]]) == [["", "a"], [["x", "1 ± 2"]]]
    assert page.typeset(claims) == [{"statement": "1 ± 2", "measured": "3", "holds": True}]
    assert page.typeset(None) is None


def test_a_number_that_is_not_finite_is_shown_as_none(tmp_path):
    shown = page.shown(
        json.loads(json.dumps(record(Report("", [Line("x", np.nan, np.nan)], [], {}, None))))["lines"][0]
    )
    assert shown["ours"] == "-"
    assert shown["ratio"] == ""


def test_an_experiment_that_has_ended_is_not_run_again(tmp_path, monkeypatch):
    ran, stores = [], []

    def run_one(processes, name, options, *rest):
        ran.append(name)
        stores.append(options.store)
        if name == "kernel_beta":
            return "it went wrong\nexit status 1"
        save(Report(name, [], [], {"x": np.arange(1)}, None), name, options.out)
        told = {"seconds": 1.0, "pulls": 0, "command": "", "machine": "", "versions": ""}
        text = json.dumps(record(Report(name, [], [], {}, None)) | told)
        whole(options.out / f"{name}.json", lambda path: path.write_text(text))  # the page is built meanwhile
        return ""

    monkeypatch.setattr(page.running, "run_one", run_one)
    unset = dict.fromkeys(("seeds", "lanes", "store", "data", "quizzes"))
    options = Namespace(out=tmp_path, only=[""], quick=True, rerun=False, jobs=1, **unset)
    assert page.run(options, NAMES) == 1
    assert sorted(ran) == sorted(NAMES)
    assert "it went wrong" in (tmp_path / "index.html").read_text()
    assert page.run(options, NAMES) == 1
    assert ran[len(NAMES) :] == ["kernel_beta"]  # the one that failed
    page.run(Namespace(**vars(options) | {"quick": False}), {"linear_table1": NAMES["linear_table1"]})
    assert ran[-1] == "linear_table1"
    # Small and full runs do not share a store, which would refuse the other's seeds.
    assert len(set(stores[:-1])) == 1
    assert stores[-1] != stores[0]
    assert stores[-1].parent == tmp_path / "runs"


def test_data_go_to_the_experiments_that_take_them():
    options = Namespace(data="images", quizzes=None)
    assert page.running.data_flags("kcenter_table1", options) == ["--data", "images"]
    assert page.running.data_flags("fullbandit_table2", options) == []
    assert page.running.data_flags("linear_table1", options) == []
    assert page.running.data_flags("fullbandit_replay", options) is None
    given = Namespace(data=None, quizzes="quizzes")
    assert page.running.data_flags("fullbandit_replay", given) == ["--data", "quizzes"]
    assert page.running.data_flags("kcenter_table1", given) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")
def test_in_a_browser(tmp_path):
    from playwright.sync_api import sync_playwright

    address = written(tmp_path).as_uri()
    said, asked = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 390, "height": 800})
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(address)

        assert tab.locator("#summary tbody tr").count() == len(NAMES)
        images = tab.locator("img")
        assert images.count() == 2
        for index in range(2):
            assert images.nth(index).evaluate("image => image.complete && image.naturalWidth > 0")
            assert len(images.nth(index).get_attribute("alt")) > 20

        def column(table, place):
            return tab.locator(f"{table} tbody tr").evaluate_all(
                "(rows, place) => rows.map(row => row.cells[place].textContent.trim())", place
            )

        times = tab.locator("#summary thead button", has_text="time")
        times.click()
        assert column("#summary", 6) == ["7 s", "1 min 1 s", "2 min 5 s"]
        times.click()
        assert column("#summary", 6) == ["2 min 5 s", "1 min 1 s", "7 s"]
        assert tab.locator("#summary th[aria-sort=descending]").count() == 1
        tab.locator("#linear_table1 thead button", has_text="ours").first.click()
        assert column("#linear_table1 table", 0) == ["ten", "seventy", "two thousand"]

        # A phone shows the page without scrolling sideways; wide tables scroll by themselves.
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        background = "getComputedStyle(document.body).backgroundColor"
        tab.emulate_media(color_scheme="light")
        light = tab.evaluate(background)
        tab.emulate_media(color_scheme="dark")
        assert tab.evaluate(background) != light
        browser.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
