"""Linear bandits fitted to data: the Yahoo! log R6A, if the user has it, and data that scikit-learn bundles.

Each instance follows section 7.2 and appendix A of Xu, Honda and Sugiyama (2018): the ridge fit of labels +1
and -1 is the truth, rewards are signs (`linear.environment(instance, noise="sign")`), and the arms are drawn from the
data until the best one leads all others by a least gap. Arms need not span their space: see `linear.reduce_instance`.
"""

import gzip
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import jax.numpy as jnp
import numpy as np
from sklearn import datasets

from jaxbandits.checks import require
from jaxbandits.linear import Instance, separated_arms

COMPONENTS = 4  # principal components that describe a digit
RIDGE, MIN_GAP = 0.01, 0.05  # regularisation of a fit; smallest lead of the best arm over every other


class R6ALog(NamedTuple):
    """Statistics of a log of displays z = kron(article, user) in R^36, labelled +1 if clicked and -1 otherwise."""

    gram: np.ndarray  # float (36, 36)   sum of z z'
    moment: np.ndarray  # float (36,)    sum of label z
    sample: np.ndarray  # float (N, 36)  uniform sample of the displays' z
    displays: int  # lines in the sums
    skipped: int  # malformed lines, left out


def load_r6a(path: str | Path, *, sample: int = 10_000, seed: int = 0) -> R6ALog:
    """Reads a log of the Yahoo! Front Page Today Module (R6A), plain or gzipped; the paper uses 1 May 2009.

    A line holds, split at blanks: timestamp, id of the displayed article, click (0 or 1), then `|user` and six
    `index:value` tokens, then for every article of the pool `|id` and six such tokens; an index from 1 to 6 is the
    number of the feature. Lines without a complete user and displayed article are skipped and counted. The log is
    streamed, so it need not fit in memory. A random `sample` of its displays, drawn from `seed`, is kept as candidate
    arms.

    Raises:
        ValueError: `path` is no file, it has no line in this format, or `sample` is below 1.
    """
    path, rng = Path(path), np.random.default_rng(seed)
    require(sample >= 1, "sample", "be at least 1", sample)
    require(path.is_file(), "path", "name a file", str(path))
    gram, moment, kept = np.zeros((36, 36)), np.zeros(36), []
    displays = skipped = 0
    with _open(path) as log:
        for line in log:
            if (display := _parse(line)) is None:
                skipped += 1
                continue
            article, user, label = display
            z = np.kron(article, user)
            gram += np.outer(z, z)
            moment += label * z
            index = int(rng.integers(displays + 1))  # a uniform sample: Vitter (1985), algorithm R
            if displays < sample:
                kept.append(z)
            elif index < sample:
                kept[index] = z
            displays += 1
    require(displays > 0, "path", "name a log with at least one line in the format of R6A", str(path))
    return R6ALog(gram, moment, np.array(kept), displays, skipped)


def r6a_instance(log: R6ALog, seed: int, K: int) -> Instance:
    """Draws K displays of the log as arms (K, 36), with the ridge fit of the clicks as the truth."""
    return _fitted(log.gram, log.moment, log.sample, seed, K)


def real_features(name: str, seed: int, K: int) -> Instance:
    """Draws K real feature vectors as arms, with the ridge fit of the labels as the truth.

    `digits` is the closest that scikit-learn bundles to a log of articles shown to users: it has both items and
    contexts. An item is one of the ten digits, a context one of 1797 handwritten images, and a pair is labelled +1 if
    the image shows the digit (one pair in ten, about as rare as a click). As in R6A each side is a short vector and a
    constant 1, and a pair's features are their Kronecker product: an image is described by its first four principal
    components, a digit by the components of its mean image, either scaled by a constant to mean squared norm 1. So d =
    25, which is also the rank of the `yahoo_like` stand-in.

    The others have no items, so a row's features are its standardised measurements and a constant 1: `diabetes` (442
    patients, d = 11; progression above the median), `wine` (178 wines, d = 14; the first cultivar), `breast_cancer`
    (569 tumours, d = 31, nearly collinear; benign).
    """
    require(name in LOADERS, "name", f"be one of {', '.join(LOADERS)}", name)
    features, positive = LOADERS[name]()
    return _fitted(features.T @ features, features.T @ np.where(positive, 1.0, -1.0), features, seed, K)


def _fitted(gram: np.ndarray, moment: np.ndarray, features: np.ndarray, seed: int, K: int) -> Instance:
    """Draws K >= 2 arms with all abs(x.theta) < 1 and noise_scale 1.

    Raises:
        ValueError: no draw of K arms reaches `MIN_GAP`.
    """
    theta = np.linalg.solve(gram + RIDGE * np.eye(len(gram)), moment)
    arms = separated_arms(np.random.default_rng(seed), features, theta, K, MIN_GAP)
    return Instance(jnp.asarray(arms), jnp.asarray(theta), jnp.ones(()))


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
    """Returns the six features of the block named `name`, in the order of their indices."""
    tokens = next((block.split()[1:] for block in blocks if block.startswith(f"{name} ")), [])
    try:
        features = {int(index): float(value) for index, _, value in (token.partition(":") for token in tokens)}
    except ValueError:
        return None
    complete = len(tokens) == 6 and features.keys() == set(range(1, 7)) and all(map(math.isfinite, features.values()))
    return [features[index] for index in range(1, 7)] if complete else None


# The data bundled with scikit-learn

Data = tuple[np.ndarray, np.ndarray]  # features, and whether the label is +1


def _digits() -> Data:
    pixels, shown = datasets.load_digits(return_X_y=True)
    centred = pixels - pixels.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    images = centred @ axes[:COMPONENTS].T
    digits = np.stack([images[shown == digit].mean(axis=0) for digit in range(10)])
    items, contexts = (
        np.column_stack([x / np.sqrt(np.mean(np.sum(x**2, axis=1))), np.ones(len(x))]) for x in (digits, images)
    )
    digit, image = np.divmod(np.arange(10 * len(images)), len(images))
    pairs = np.einsum("ni,nj->nij", items[digit], contexts[image])
    return pairs.reshape(len(pairs), -1), shown[image] == digit


def _standardised(load: Callable[..., Any], is_positive: Callable[[np.ndarray], np.ndarray]) -> Data:
    x, label = load(return_X_y=True)
    return np.column_stack([(x - x.mean(axis=0)) / x.std(axis=0), np.ones(len(x))]), np.asarray(is_positive(label))


LOADERS: dict[str, Callable[[], Data]] = {
    "digits": _digits,
    "diabetes": partial(
        _standardised, datasets.load_diabetes, lambda progression: progression > np.median(progression)
    ),
    "wine": partial(_standardised, datasets.load_wine, lambda cultivar: cultivar == 0),
    "breast_cancer": partial(_standardised, datasets.load_breast_cancer, lambda benign: benign == 1),
}
