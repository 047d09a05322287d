"""Distances from judgements of similarity: votes on shoes, which the user must provide, and simulated votes.

Distances are NumPy arrays (n, n) on the host, for `distance_instance`.
"""

import gzip
from pathlib import Path
from typing import Literal

import numpy as np

from jaxbandits import checks
from jaxbandits.checks import is_concrete, require
from jaxbandits.kcenter._problem.images import as_path

SHOES = 85
ZAPPOS = (
    "the judgements of Heim et al. (2015) on UT Zappos50K, as kept by https://github.com/stsievert/salmon, counted by "
    "triplet"
)
MATRIX = "D_heuristic_85x85.csv"
VOTES = "zappos_triplet_counts.csv.gz"
VOTES_HEADER = "head,b,c,votes_b_closer,votes_c_closer"

Source = Literal["matrix", "votes"]


def zappos(path: str | Path, n: int = SHOES, source: Source = "matrix") -> np.ndarray:
    """Loads distances of shoes, from people's judgements of which shoes look alike.

    Args:
        path: the folder with the file that `source` names.
        n: number of shoes, in 2..85; the first n are taken.
        source: "matrix" reads the file D_heuristic_85x85.csv, 85 lines of 85 numbers; "votes" computes the same
            distances from votes (see `zappos_from_votes`).

    Returns:
        float64 (n, n), in [0, 1]: the probabilities of Bernoulli rewards, `distance_instance(.., noise="bernoulli")`.

    Raises:
        ValueError: the file is missing or not of this form, or an argument is out of range.
    """
    path = as_path("path", path)
    checks.whole("n", n, least=2, most=SHOES)
    checks.one_of("source", source, Source)
    if source == "votes":
        return zappos_from_votes(path)[:n, :n]
    file = path / MATRIX
    require(file.is_file(), "path", f"hold {MATRIX}, computed from {ZAPPOS}", str(file))
    rows = [line.split(",") for line in file.read_text(encoding="utf-8").split()]
    widths = sorted({len(row) for row in rows})
    require(len(rows) == SHOES and widths == [SHOES], MATRIX, f"hold {SHOES} x {SHOES} numbers", (len(rows), widths))
    return np.array(rows, float)[:n, :n]


def zappos_from_votes(path: str | Path) -> np.ndarray:
    """Computes distances from votes on which of two things is more like a third one.

    P[h, b] is the mean share of votes that b is closer to h than c is, over all c with at least one vote on it, and
    D[i, j] = 1 - P[i, j] P[j, i].

    Args:
        path: the folder with zappos_triplet_counts.csv.gz. Its header is head,b,c,votes_b_closer,votes_c_closer and its
            lines are integers; things are numbered from 0.

    Returns:
        float64 (n, n), with n - 1 the largest number of a thing in the file; (85, 85) for the shoes.

    Raises:
        ValueError: the file is missing or not of this form, or there is no vote on some pair.
    """
    file = as_path("path", path) / VOTES
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
    missing = np.argwhere((count == 0) & ~np.eye(n, dtype=bool))
    require(len(missing) == 0, VOTES, "hold a vote on every ordered pair", f"none on {missing[:1].tolist()}")
    return _disagreement(total / np.maximum(count, 1))


def triplet_like(n: int, seed: int, dim: int = 3, sharpness: float = 2.0, reps: int = 1) -> np.ndarray:
    """Simulates votes on which of two things is more like a third one, and computes distances: a stand-in for `zappos`.

    Things are normal vectors z. A voter finds j more like i than l with probability
    1/(1 + exp(-sharpness (|z_i - z_l| - |z_i - z_j|))).

    Args:
        n: number of things, at least 3.
        seed: seed of `numpy.random.default_rng`.
        dim: dimension of the vectors.
        sharpness: factor in the law of a vote above.
        reps: votes on each i and {j, l}.

    Returns:
        float64 (n, n), in [0, 1], computed from the votes as in `zappos_from_votes`.

    Raises:
        ValueError: an argument is out of range.
    """
    checks.whole("n", n, least=3)
    checks.whole("seed", seed, least=0)
    checks.whole("dim", dim, least=1)
    checks.real("sharpness", sharpness)
    require(is_concrete(sharpness), "sharpness", "be concrete: votes are drawn on the host", sharpness)
    checks.whole("reps", reps, least=1)
    from scipy.special import expit

    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, dim))
    preference = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        far = np.linalg.norm(z[others] - z[i], axis=1)
        j, l = np.triu_indices(n - 1, 1)
        share = rng.binomial(reps, expit(sharpness * (far[l] - far[j]))) / reps
        total = np.bincount(j, share, n - 1) + np.bincount(l, 1 - share, n - 1)
        preference[i, others] = total / (n - 2)
    return _disagreement(preference)


def _disagreement(preference: np.ndarray) -> np.ndarray:
    distances = 1 - preference * preference.T
    np.fill_diagonal(distances, 0)
    return distances
