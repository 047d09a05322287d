"""Writes the reference: `python -m jaxbandits.reference FOLDER`. It needs pdoc.

Pages of all modules come from the docstrings. The start page has what is where, the tutorials, a gallery of figures,
and a table of all algorithms. A search works in a browser without a server or a network. In a clone the tutorials of
`experiments/tutorials` are executed and shown with their output and pictures.
"""

from jaxbandits.reference.facts import Facts, all_facts, factories, facts_of, is_factory
from jaxbandits.reference.fields import document_fields, meanings, structs
from jaxbandits.reference.writing import main

__all__ = [
    "Facts",
    "all_facts",
    "document_fields",
    "factories",
    "facts_of",
    "is_factory",
    "main",
    "meanings",
    "structs",
]
