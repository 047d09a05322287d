"""The examples in the docstrings give the results shown."""

import doctest
import importlib
import pkgutil
import sys

import pytest

import jaxbandits

MODULES = [module.name for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits.")]
# Whole runs that compile for four seconds or more. The tests of their family run the same programs anyway.
LONG = (
    *("cpe", "kernel", "linear", "mab", "rare", "base.memoryless", "testing.check", "engine.sweeping.sweep"),
    *("kernel._shared.traffic.messages", "kcenter._theory.diagnostics.confidence", "mab._theory.diagnostics.estimates"),
    *("mab._algorithms.successive_rejects.successive_rejects", "mab._algorithms.apgai.apgai"),
    *("mab._algorithms.sar.sar", "mab._algorithms.sh_top_m.sh_top_m", "mab._problem.recorded.recorded"),
    *("engine.results.comparison.compare", "engine.results.concatenation.concatenate", "engine.run.recording.record"),
    *("engine.results.runs.Results.plot", "rare._methods.mixture.Mixture", "rare._methods.splitting.splitting"),
    "rare._methods.estimation.error_probability",
)
EXAMPLES = [
    pytest.param(
        example,
        id=example.name,
        marks=[pytest.mark.wide] if example.name.removeprefix("jaxbandits.") in LONG else [],
    )
    for name in MODULES
    for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    if example.examples
]


def test_docstrings_have_examples():
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example):
    if "matplotlib.pyplot" in sys.modules:  # an example that draws begins with a new figure
        sys.modules["matplotlib.pyplot"].close("all")
    output = []
    result = doctest.DocTestRunner().run(example, out=output.append)
    assert result.failed == 0, "".join(output)
