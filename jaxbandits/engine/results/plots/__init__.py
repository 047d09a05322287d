"""Figures of groups of runs: means, quantiles, boxes and error rates over a parameter, and curves over their marks."""

from jaxbandits.engine.results.plots.drawing import draw as draw
