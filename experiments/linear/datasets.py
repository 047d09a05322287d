"""Linear bandits fitted to data: the Yahoo! log R6A, if the user has it, and data that scikit-learn bundles.

Each instance follows section 7.2 and appendix A of Xu, Honda and Sugiyama (2018): the ridge fit of labels +1
and -1 is the truth, rewards are signs (`linear.environment(instance, noise="sign")`), and the arms are drawn from the
data until the best one leads all others by a least gap. Arms need not span their space: see `linear.reduce_instance`.
"""

import gzip
import itertools
import math
from pathlib import Path
from typing import NamedTuple, TextIO

import jax.numpy as jnp
import numpy as np
from sklearn import datasets

from jaxbandits.checks import require
from jaxbandits.linear import Instance, separated_arms

BLOCK = 8192  # displays that are held at a time while a log is read
COMPONENTS = 4  # principal components that describe a digit


class R6ALog(NamedTuple):
    """What is kept of a log of displays, z = kron(article, user) in R^36, labelled +1 if clicked, else -1."""

    gram: np.ndarray  # float (36, 36)   sum of z z'
    moment: np.ndarray  # float (36,)    sum of label z
    sample: np.ndarray  # float (N, 36)  uniform sample of the displays' z
    displays: int  # lines in the sums
    skipped: int  # malformed lines, left out


def load_r6a(path: str | Path, *, sample: int = 10_000, seed: int = 0) -> R6ALog:
    """Reads a log of the Yahoo! Front Page Today Module (R6A), which may not be redistributed.

    A line holds, split at blanks: timestamp, id of the displayed article, click (0 or 1), then `|user` and
    six `index:value` tokens, then for every article of the pool `|id` and six such tokens; an index from 1 to
    6 is the number of the feature. Lines without a complete user and displayed article are skipped and
    counted. The log is streamed, never held in memory.

    Args:
        path: the log, plain or gzipped; the paper uses 1 May 2009.
        sample: number of displays to keep as candidate arms, uniform over the log (all of them if there are
            fewer).
        seed: of the `numpy.random.default_rng` that draws the sample.

    Returns:
        R6ALog.

    Raises:
        ValueError: `path` is no file, it has no line in this format, or `sample` is below 1.
    """
    path = Path(path)
    require(sample >= 1, "sample", "be at least 1", sample)
    require(path.is_file(), "path", "name a file", str(path))
    rng = np.random.default_rng(seed)
    gram, moment, kept = np.zeros((36, 36)), np.zeros(36), np.zeros((0, 36))
    lines = displays = 0
    with _open(path) as log:
        while block := list(itertools.islice(log, BLOCK)):
            lines += len(block)
            parsed = [display for display in map(_parse, block) if display is not None]
            if not parsed:
                continue
            article, user, label = (np.array(column) for column in zip(*parsed, strict=True))
            z = _kron(article, user)
            gram += z.T @ z
            moment += z.T @ label
            kept = _reservoir(rng, kept, z, before=displays, size=sample)
            displays += len(z)
    require(displays > 0, "path", "name a log with at least one line in the format of R6A", str(path))
    return R6ALog(gram, moment, kept, displays, lines - displays)


def r6a_instance(log: R6ALog, seed: int, K: int, *, min_gap: float = 0.05, ridge: float = 0.01) -> Instance:
    """K displays of the log as arms, with the ridge fit of the clicks as the truth.

    Args:
        log: from `load_r6a`.
        seed: of the `numpy.random.default_rng` that draws the arms.
        K: number of arms, at least 2.
        min_gap: least lead of the best arm over every other.
        ridge: regularisation of the fit.

    Returns:
        Instance with arms (K, 36), all abs(x.theta) < 1 and noise_scale 1.

    Raises:
        ValueError: `K` is below 2, or no draw of the arms reaches `min_gap`.
    """
    theta = np.linalg.solve(log.gram + ridge * np.eye(36), log.moment)
    return _draw(log.sample, theta, seed, K, min_gap)


def real_features(name: str, seed: int, K: int, *, min_gap: float = 0.05, ridge: float = 0.01) -> Instance:
    """K real feature vectors as arms, with the ridge fit of the data's own labels as the truth.

    `digits` is the closest that scikit-learn bundles to a log of articles shown to users: it has both items
    and contexts. An item is one of the ten digits, a context one of 1797 handwritten images, and a pair is
    labelled +1 if the image shows the digit (one pair in ten, about as rare as a click). As in R6A each side
    is a short vector and a constant 1, and a pair's features are their Kronecker product: an image is
    described by its first four principal components, a digit by those of its mean image, either scaled by a
    constant to mean squared norm 1. So d = 25, which is also the rank of the `yahoo_like` stand-in.

    The others have no items, so a row's features are its standardised measurements and a constant 1:
    `diabetes` (442 patients, d = 11; progression above the median), `wine` (178 wines, d = 14; the first
    cultivar), `breast_cancer` (569 tumours, d = 31, nearly collinear; benign).

    Args:
        name: "digits", "diabetes", "wine" or "breast_cancer".
        seed: of the `numpy.random.default_rng` that draws the arms.
        K: number of arms, at least 2.
        min_gap: least lead of the best arm over every other.
        ridge: regularisation of the fit.

    Returns:
        Instance with arms (K, d), all abs(x.theta) < 1 and noise_scale 1.

    Raises:
        ValueError: `name` is unknown, `K` is below 2, or no draw of the arms reaches `min_gap`.
    """
    loaders = {"digits": _digits, "diabetes": _diabetes, "wine": _wine, "breast_cancer": _breast_cancer}
    require(name in loaders, "name", f"be one of {', '.join(loaders)}", name)
    features, positive = loaders[name]()
    label = np.where(positive, 1.0, -1.0)
    theta = np.linalg.solve(features.T @ features + ridge * np.eye(features.shape[1]), features.T @ label)
    return _draw(features, theta, seed, K, min_gap)


def _draw(features: np.ndarray, theta: np.ndarray, seed: int, K: int, min_gap: float) -> Instance:
    arms = separated_arms(np.random.default_rng(seed), features, theta, K, min_gap)
    return Instance(jnp.asarray(arms), jnp.asarray(theta), jnp.ones(()))


def _kron(items: np.ndarray, contexts: np.ndarray) -> np.ndarray:
    return np.einsum("ni,nj->nij", items, contexts).reshape(len(items), -1)


# The log


def _open(path: Path) -> TextIO:
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return (gzip.open if gzipped else open)(path, "rt", encoding="ascii", errors="replace")


def _parse(line: str) -> tuple[list[float], list[float], float] | None:
    """Features of the displayed article and of the user, and the label; None if the line is malformed."""
    head, *blocks = line.split("|")
    match head.split():
        case [_, shown, ("0" | "1") as click]:
            article, user = (_block(blocks, name) for name in (shown, "user"))
            if article is not None and user is not None:
                return article, user, 2.0 * int(click) - 1.0
    return None


def _block(blocks: list[str], name: str) -> list[float] | None:
    """The six features of the block that is called `name`, in the order of their indices."""
    tokens = next((block.split()[1:] for block in blocks if block.startswith(f"{name} ")), [])
    try:
        features = {int(index): float(value) for index, _, value in (token.partition(":") for token in tokens)}
    except ValueError:
        return None
    complete = len(tokens) == 6 and features.keys() == set(range(1, 7)) and all(map(math.isfinite, features.values()))
    return [features[index] for index in range(1, 7)] if complete else None


def _reservoir(rng: np.random.Generator, kept: np.ndarray, new: np.ndarray, *, before: int, size: int) -> np.ndarray:
    """Extends a uniform sample of `before` rows to one of all rows (Vitter, 1985, algorithm R)."""
    rank = np.arange(before, before + len(new))
    slot = np.where(rank < size, rank, rng.integers(rank + 1))
    grown = np.vstack([kept, new[: max(0, size - len(kept))]])
    for row in np.flatnonzero(slot < size):
        grown[slot[row]] = new[row]
    return grown


# The data bundled with scikit-learn: (features, is the label +1)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    pixels, shown = datasets.load_digits(return_X_y=True)
    centred = pixels - pixels.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    images = centred @ axes[:COMPONENTS].T
    digits = np.stack([images[shown == digit].mean(axis=0) for digit in range(10)])
    items, contexts = (
        np.column_stack([x / np.sqrt(np.mean(np.sum(x**2, axis=1))), np.ones(len(x))]) for x in (digits, images)
    )
    digit, image = np.divmod(np.arange(10 * len(images)), len(images))
    return _kron(items[digit], contexts[image]), shown[image] == digit


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    measurements, progression = datasets.load_diabetes(return_X_y=True)
    return _standardised(measurements), progression > np.median(progression)


def _wine() -> tuple[np.ndarray, np.ndarray]:
    measurements, cultivar = datasets.load_wine(return_X_y=True)
    return _standardised(measurements), cultivar == 0


def _breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    measurements, benign = datasets.load_breast_cancer(return_X_y=True)
    return _standardised(measurements), benign == 1


def _standardised(x: np.ndarray) -> np.ndarray:
    return np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))])
