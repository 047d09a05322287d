"""Results of a sweep of several rules."""

import dataclasses
from collections.abc import Mapping

from jaxbandits.engine.results.concatenation import concatenate
from jaxbandits.engine.results.runs import Results
from jaxbandits.engine.results.summaries import RULE
from jaxbandits.engine.results.tables import column_name


def of_rules(results: Mapping[str, Results]) -> Results:
    """Joins the results of several rules, one after the other, with the rule's name as third column."""
    joined = concatenate(results, name=RULE)
    columns = {RULE if name == column_name(RULE) else name: values for name, values in joined.columns.items()}
    return dataclasses.replace(joined, columns=columns)
