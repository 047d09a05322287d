"""Figures and tables of the papers: `python -m experiments NAME`."""
