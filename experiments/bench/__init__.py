"""Speed of the whole engine, against the plain NumPy transcription in the same run.

A row is one sweep: its pulls and rounds a second (all batches together, without compilation), how much faster than the
transcription on one core, the share of lane-rounds that were busy, the compile time and the memory of the compiled
program with its lanes.
"""

import importlib

from experiments.report import Report
from experiments.settings import Settings


def run(options: Settings) -> Report:
    return importlib.import_module(f"experiments.bench.{options.own['bench']}").run(options)
