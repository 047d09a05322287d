"""Mixtures of instances, their likelihood ratios, and the estimates that stand on them."""
