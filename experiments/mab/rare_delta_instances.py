"""Errors too rare to be seen, on Bernoulli arms and on one good arm of five: `mab_rare_delta` on other instances."""

from experiments.mab import rare_delta
from experiments.mab.rare_delta import RULES, Row
from experiments.report import Report
from experiments.settings import Settings
from jaxbandits import mab
from jaxbandits.numerics import thresholds

GK1, ONE = "gk1", "one of five"
PROVED = {GK1: thresholds.gk_union, ONE: thresholds.kk_pair}


def run(options: Settings) -> Report:
    instances = {ONE: mab.gaussian((1.0, 0.0, 0.0, 0.0, 0.0))}
    if not options.quick:
        instances |= {GK1: mab.gk1()}
    rows = {}
    for name, instance in instances.items():
        rules = {thresholds.gk16: RULES[:3], thresholds.log_t: RULES[:1], PROVED[name]: RULES[:1]}
        rows |= rare_delta.rows(name, instance, {thresholds.gk16: RULES[:1]} if options.quick else rules)
    note = "One of five: a mean of 1, four of 0. gk1: Bernoulli arms, for which gk_union is proved."
    return rare_delta.report_of(rows, smallest, options, note)


def smallest(row: Row) -> float:
    """Returns the smallest delta of a row: below it, runs that err take 100,000 pulls and more, and a cell minutes."""
    instance, threshold, rule = row
    is_first = (threshold, rule) == ("gk16", "TTUCB")
    if instance == GK1:
        return 1e-9 if is_first else 1e-4
    return 1e-12 if is_first else 1e-6
