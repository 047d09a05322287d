"""Instances of k-center: loaders of data sets that may not be redistributed, data that come with scikit-learn, and
random points.

Everything here returns NumPy arrays on the host: points (n, m) for `problem.dimension_sampling`, or distances (n, n)
for `problem.noisy_distances`. Integer points go with the number of levels that is named beside them.
"""

import gzip
import hashlib
import importlib
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxbandits.checks import require

IMAGE_LEVELS = 255  # of `tiny_imagenet` and `image_crops`
DIGIT_LEVELS = 16  # of `digits`
BINARY_LEVELS = 1  # of `binary_rows`

SIDE = 64  # pixels of a side of an image
SHOES = 85
DIGITS = 1797
TINY_IMAGENET = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
ZAPPOS = (
    "the judgements of Heim et al. (2015) on UT Zappos50K, as kept by https://github.com/stsievert/salmon, counted by "
    "triplet"
)
MATRIX = "D_heuristic_85x85.csv"
VOTES = "zappos_triplet_counts.csv.gz"
VOTES_HEADER = "head,b,c,votes_b_closer,votes_c_closer"


# Data that the user has


def tiny_imagenet(path: str | Path, n: int, start: int = 0, *, cache: str | Path | None = None) -> np.ndarray:
    """Validation images of Tiny ImageNet as points.

    Decoded images are kept in a .npy file, so that the next call takes no time; where none can be written, the call
    does without.

    Args:
        path: the folder with val_0.JPEG, val_1.JPEG, ...: tiny-imagenet-200/val/images.
        n: number of images, at least 2.
        start: number of the first one; images follow each other by number.
        cache: folder of the .npy files; None: `path` if it can be written to, else `jaxbandits` in the user's folder
            of caches (`XDG_CACHE_HOME`, or ~/.cache).

    Returns:
        uint8 (n, 12288), of 255 levels: rows, columns, channels. Grey images have three equal channels.

    Raises:
        ValueError: an image is missing or not 64 x 64, or `n` or `start` is out of range.
        ImportError: Pillow is not installed.
    """
    require(n >= 2, "n", "be at least 2", n)
    require(start >= 0, "start", "be at least 0", start)
    path = Path(path)
    name = f"tiny-imagenet-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}-{start}-{n}.npy"
    folders = [path, _user_cache()] if cache is None else [Path(cache)]
    for folder in folders:
        images = _read_cached(folder / name, (n, SIDE * SIDE * 3))
        if images is not None:
            return images
    images = np.stack([_decode(path / f"val_{number}.JPEG") for number in range(start, start + n)])
    any(_write_cached(folder / name, images) for folder in folders)
    return images


def zappos(path: str | Path, n: int = SHOES, source: Literal["matrix", "votes"] = "matrix") -> np.ndarray:
    """Distances of shoes, from what people said looks alike.

    Args:
        path: the folder with the file that `source` names.
        n: number of shoes, in 2..85; the first n are taken.
        source: "matrix", the file D_heuristic_85x85.csv, 85 lines of 85 numbers, or "votes", from which the same
            distances are computed (see `zappos_from_votes`).

    Returns:
        float64 (n, n), in [0, 1]. As chances they are those of a Bernoulli query: see `noisy_distances`.

    Raises:
        ValueError: the file is missing or not of this form, or an argument is out of range.
    """
    require(2 <= n <= SHOES, "n", f"lie in 2..{SHOES}", n)
    require(source in ("matrix", "votes"), "source", "be 'matrix' or 'votes'", source)
    if source == "votes":
        return zappos_from_votes(path)[:n, :n]
    file = Path(path) / MATRIX
    require(file.is_file(), "path", f"hold {MATRIX}, computed from {ZAPPOS}", str(file))
    rows = [line.split(",") for line in file.read_text(encoding="utf-8").split()]
    widths = sorted({len(row) for row in rows})
    require(len(rows) == SHOES and widths == [SHOES], MATRIX, f"hold {SHOES} x {SHOES} numbers", (len(rows), widths))
    return np.array(rows, float)[:n, :n]


def zappos_from_votes(path: str | Path) -> np.ndarray:
    """Distances from votes on which of two things is more like a third one.

    P[h, b] is the mean share of votes that b is closer to h than c is, over all c with at least one vote on it, and
    D[i, j] = 1 - P[i, j] P[j, i].

    Args:
        path: the folder with zappos_triplet_counts.csv.gz, whose header is
            head,b,c,votes_b_closer,votes_c_closer and whose lines are integers, things being numbered from 0.

    Returns:
        float64 (n, n), with n - 1 the largest number in the file; 85 for the shoes.

    Raises:
        ValueError: the file is missing or not of this form, or there is no vote on some pair.
    """
    file = Path(path) / VOTES
    require(file.is_file(), "path", f"hold {VOTES}, {ZAPPOS}", str(file))
    header, *lines = gzip.decompress(file.read_bytes()).decode().split() or [""]
    require(header == VOTES_HEADER, VOTES, f"begin with {VOTES_HEADER}", header)
    require(len(lines) >= 1, VOTES, "hold at least one triplet", len(lines))
    head, b, c, for_b, for_c = np.loadtxt(lines, np.int64, delimiter=",", ndmin=2).T
    triplets = (head >= 0) & (b >= 0) & (b < c) & (head != b) & (head != c) & (for_b >= 0) & (for_c >= 0)
    require(triplets, VOTES, "hold lines of head, b < c and two counts", lines[int(np.argmin(triplets))])
    n = int(max(head.max(), b.max(), c.max())) + 1
    voted = for_b + for_c > 0
    head, b, c, for_b, for_c = (column[voted] for column in (head, b, c, for_b, for_c))
    share = for_b / (for_b + for_c)
    pairs = np.concatenate([head * n + b, head * n + c])
    total = np.bincount(pairs, np.concatenate([share, 1 - share]), n * n).reshape(n, n)
    count = np.bincount(pairs, minlength=n * n).reshape(n, n)
    unseen = np.argwhere((count == 0) & ~np.eye(n, dtype=bool))
    require(len(unseen) == 0, VOTES, "hold a vote on every ordered pair", f"none on {unseen[:1].tolist()}")
    return _disagreement(total / np.maximum(count, 1))


# Data that come with scikit-learn


def digits(n: int | None = None, seed: int | None = None) -> np.ndarray:
    """Handwritten digits of 8 x 8 pixels as points.

    Some of the 1797 digits are equal, and many distances are: greedy's centers may be tied.

    Args:
        n: number of digits, in 2..1797; None: all.
        seed: of the `numpy.random.default_rng` whose permutation of all digits they are the first of; None: in the
            order of the data set.

    Returns:
        uint8 (n, 64), of 16 levels.

    Raises:
        ValueError: `n` is out of range.
        ImportError: scikit-learn is not installed.
    """
    n = DIGITS if n is None else n
    require(2 <= n <= DIGITS, "n", f"lie in 2..{DIGITS}", n)
    points = _needed("sklearn.datasets", "scikit-learn").load_digits().data.astype(np.uint8)
    return points[:n] if seed is None else points[np.random.default_rng(seed).permutation(DIGITS)[:n]]


def image_crops(n: int, seed: int, size: int = SIDE, augment: bool = False) -> np.ndarray:
    """Random crops of two photographs as points, a stand-in for small images.

    Args:
        n: number of crops, at least 2.
        seed: of `numpy.random.default_rng`.
        size: pixels of a side of a crop, in 1..427; a crop shows a square of random size and place.
        augment: whether channels are permuted, and half the crops inverted and half mirrored.

    Returns:
        uint8 (n, 3 size^2), of 255 levels: rows, columns, channels.

    Raises:
        ValueError: `n` or `size` is out of range.
        ImportError: scikit-learn or Pillow is not installed.
    """
    require(n >= 2, "n", "be at least 2", n)
    _needed("PIL.Image", "Pillow")
    load = _needed("sklearn.datasets", "scikit-learn").load_sample_image
    photographs = [load(name) for name in ("china.jpg", "flower.jpg")]
    height, width, _ = photographs[0].shape
    require(1 <= size <= height, "size", f"lie in 1..{height}", size)
    rng = np.random.default_rng(seed)

    def crop() -> np.ndarray:
        photograph = photographs[rng.integers(2)]
        side = rng.integers(size, height + 1)
        top, left = rng.integers(0, height - side + 1), rng.integers(0, width - side + 1)
        offsets = np.arange(size) * side // size
        image = photograph[top + offsets[:, None], left + offsets]
        if augment:
            image = image[:, :, rng.permutation(3)]
            image = 255 - image if rng.random() < 0.5 else image
            image = image[:, ::-1] if rng.random() < 0.5 else image
        return image.reshape(-1)

    return np.stack([crop() for _ in range(n)])


# Random points


def clusters(n: int, m: int, n_clusters: int, spread: float, seed: int) -> np.ndarray:
    """Points in boxes around uniform centers.

    Args:
        n: number of points, at least 2; point a belongs to cluster a mod n_clusters.
        m: dimension.
        n_clusters: number of clusters.
        spread: half the width of a cluster, at least 0.
        seed: of `numpy.random.default_rng`.

    Returns:
        float64 (n, m), in [0, 1].

    Raises:
        ValueError: an argument is out of range.
    """
    _check_size(n, m)
    require(n_clusters >= 1, "n_clusters", "be at least 1", n_clusters)
    require(spread >= 0, "spread", "be at least 0", spread)
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.1, 0.9, (n_clusters, m))
    return np.clip(centers[np.arange(n) % n_clusters] + rng.uniform(-spread, spread, (n, m)), 0, 1)


def contrast_rows(n: int, m: int, seed: int) -> np.ndarray:
    """Points around the middle of the cube, each at a scale of its own, so that distances differ much.

    Args:
        n: number of points, at least 2.
        m: dimension.
        seed: of `numpy.random.default_rng`.

    Returns:
        float64 (n, m), in [0, 1].

    Raises:
        ValueError: an argument is out of range.
    """
    _check_size(n, m)
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.05, 1, (n, 1))
    return 0.5 + scale * (rng.random((n, m)) - 0.5)


def binary_rows(n: int, m: int, seed: int) -> np.ndarray:
    """Corners of the cube, each with its own share of ones: the class of the paper's Theorem 1.

    Args:
        n: number of points, at least 2.
        m: dimension.
        seed: of `numpy.random.default_rng`.

    Returns:
        uint8 (n, m), of 1 level.

    Raises:
        ValueError: an argument is out of range.
    """
    _check_size(n, m)
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.05, 0.95, (n, 1))
    return (rng.random((n, m)) < share).astype(np.uint8)


def triplet_like(n: int, seed: int, dim: int = 3, beta: float = 2.0, reps: int = 1) -> np.ndarray:
    """Distances from simulated votes on which of two things is more like a third one, a stand-in for `zappos`.

    Things are normal vectors z. Asked about i, a voter prefers j to l with probability
    1/(1 + exp(-beta (|z_i - z_l| - |z_i - z_j|))).

    Args:
        n: number of things, at least 3.
        seed: of `numpy.random.default_rng`.
        dim: dimension of the vectors.
        beta: how sharply voters judge.
        reps: votes on each i and {j, l}.

    Returns:
        float64 (n, n), in [0, 1], computed from the votes as in `zappos_from_votes`.

    Raises:
        ValueError: an argument is out of range.
    """
    from scipy.special import expit

    require(n >= 3, "n", "be at least 3", n)
    require(dim >= 1, "dim", "be at least 1", dim)
    require(reps >= 1, "reps", "be at least 1", reps)
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, dim))
    preference = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        far = np.linalg.norm(z[others] - z[i], axis=1)
        j, l = np.triu_indices(n - 1, 1)
        share = rng.binomial(reps, expit(beta * (far[l] - far[j]))) / reps
        total = np.bincount(j, share, n - 1) + np.bincount(l, 1 - share, n - 1)
        preference[i, others] = total / (n - 2)
    return _disagreement(preference)


# Shared


def _disagreement(preference: np.ndarray) -> np.ndarray:
    distances = 1 - preference * preference.T
    np.fill_diagonal(distances, 0)
    return distances


def _check_size(n: int, m: int) -> None:
    require(n >= 2, "n", "be at least 2", n)
    require(m >= 1, "m", "be at least 1", m)


def _decode(file: Path) -> np.ndarray:
    require(file.is_file(), "path", f"hold {file.name}, from {TINY_IMAGENET}", str(file))
    with _needed("PIL.Image", "Pillow").open(file) as image:
        require(image.size == (SIDE, SIDE), file.name, f"be of {SIDE} x {SIDE} pixels", image.size)
        return np.asarray(image.convert("RGB")).reshape(-1)


def _needed(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this instance needs {package}: pip install {package.lower()}") from error


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxbandits"


def _read_cached(file: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    try:
        images = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return images if images.shape == shape and images.dtype == np.uint8 else None


def _write_cached(file: Path, images: np.ndarray) -> bool:
    """Whether the file could be written; it is renamed into place, so that no reader ever meets half of one."""
    temporary = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as stream:
            temporary = Path(stream.name)
            np.save(stream, images)
        temporary.replace(file)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        return False
    return True
