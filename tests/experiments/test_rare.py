from types import SimpleNamespace

import pytest

from experiments.figures import drawn
from experiments.mab import rare_delta, rare_delta_instances, weighted
from experiments.settings import Settings

FIELDS = ("runs", "learning_runs", "effective", "share", "pareto_k", "censored", "seconds")


@pytest.mark.parametrize("experiment", [rare_delta, rare_delta_instances])
def test_report_of_full_size_is_drawn(experiment, monkeypatch, tmp_path):
    """A full run takes an hour: here every estimate is the same number."""
    estimate = SimpleNamespace(estimate=1.0, se=0.1, relative_error=0.1, trust="ok", **dict.fromkeys(FIELDS, 1))
    monkeypatch.setattr(weighted, "estimates", lambda cases, options: dict.fromkeys(cases, estimate))
    report = experiment.run(Settings())
    assert len({tuple(row.items())[:3] for row in report.grid}) == len(report.grid) >= 10
    assert not report.claims[0].holds
    drawn(report.draw, "figure")(tmp_path / "figure.png", "png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
