"""Comparing what programs return, leaf by leaf and bit by bit."""

import jax
import numpy as np


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
    """Both have one structure and, in every leaf, the same numbers."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def differ(a, b) -> bool:
    """Whether some leaf does."""
    return any(not np.array_equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))
