"""One valid call of every public function of the k-center family."""

import gzip
import tempfile
from pathlib import Path

import jax
import numpy as np
from checks.calls import Call
from PIL import Image

from jaxbandits import kcenter

POINTS = kcenter.contrast_rows(6, 20, 0)
PIXELS = np.array([[0, 3], [16, 2], [5, 9], [1, 16]], np.uint8)
SUMS = kcenter.pairwise_sums(POINTS)
TABLE = kcenter.normalised_distances(SUMS, m=20)
ROWS = np.array([5, 0, 3, 1], np.int32)
SAMPLED = jax.tree.map(np.asarray, kcenter.dimension_instance(POINTS, k=3))
NOISY = jax.tree.map(np.asarray, kcenter.distance_instance(TABLE, k=3, noise_scale=0.1))
CENTERS = kcenter.greedy(TABLE, k=3).centers
ANSWER = kcenter.Centers(CENTERS, np.int32(3), np.zeros(2, np.uint32))
MEANS = np.array([[0.45, 0.5], [0.35, 0.4], [0.3, 0.47]])
DELTA = {"delta": 0.1}
DATA = tempfile.TemporaryDirectory()  # made-up files for the loaders
FOLDER = Path(DATA.name)
for number in range(2):
    Image.new("RGB", (64, 64)).save(FOLDER / f"val_{number}.JPEG")
(FOLDER / "D_heuristic_85x85.csv").write_text("\n".join([",".join(["0"] * 85)] * 85))
VOTES = "head,b,c,votes_b_closer,votes_c_closer\n0,1,2,1,1\n1,0,2,1,1\n2,0,1,1,1"
(FOLDER / "zappos_triplet_counts.csv.gz").write_bytes(gzip.compress(VOTES.encode()))
SIZES = {"n": 6, "m": 20, "k": 3}
# None is the default, or an argument that may be absent.
SHARED = {"first_center": 0, "dtype": "float64"}
SAMPLING = {"problem": SAMPLED.problem, **DELTA, **SHARED, "scale": "mean", "cap": 20}
LEADER = SAMPLING | {"triangle": "squared", "ties": "none", "leap": 4}
QUERYING = {"problem": NOISY.problem, **DELTA, **SHARED, "noise_scale": 0.1}
TRACKING = QUERYING | {"rate": "loglog", "forced_offset": 1.0, "weights_every": 100}
DEFAULTS = {"first_center": ("none",), "dtype": ("none",), "cap": ("none",), "triangle": ("none",)}
STATE = jax.tree.map(np.asarray, kcenter.ds_random(SAMPLED.problem, delta=0.1).init(jax.random.key(0)))
NOISY_STATE = kcenter.ns_random(NOISY.problem, delta=0.1, noise_scale=0.1).init(jax.random.key(0))
NOISY_STATE = jax.tree.map(np.asarray, NOISY_STATE)
WEIGHTS = {"means": MEANS, "slots": np.ones(2, bool), "candidates": np.ones(3, bool), "noise_scale": 1.0}
TRUTH = {"distances": TABLE, "centers": CENTERS}

CALLS = {
    "confidence": Call(
        kcenter.confidence,
        {"state": STATE, "problem": SAMPLED.problem, **DELTA, "interval": kcenter.Lil(), "noise_scale": None}
        | {"scale": "mean", "cap": 20},
        fine={"state": ("nan_inside",), "interval": ("none",), "cap": ("none",), "noise_scale": ("none",)},
    ),
    "confidence, noisy": Call(
        kcenter.confidence,
        {"state": NOISY_STATE, "problem": NOISY.problem, **DELTA, "interval": kcenter.KL(), "noise_scale": 0.1}
        | {"scale": "mean", "cap": None},
        fine={"state": ("nan_inside",), "interval": ("none",), "cap": ("none",)},
    ),
    "ds_ucb": Call(kcenter.ds_ucb, LEADER | {"interval": kcenter.Lil(0.1)}, DEFAULTS),
    "ds_ts": Call(kcenter.ds_ts, LEADER | {"interval": kcenter.KL(), "mix": 0.5, "redraw": False}, DEFAULTS),
    "ds_random": Call(kcenter.ds_random, SAMPLING | {"interval": kcenter.Lemma1(), "test_every": 4}, DEFAULTS),
    "ns_ts": Call(
        kcenter.ns_ts,
        QUERYING | {"interval": kcenter.KL(), "mix": 0.5, "posterior": "conjugate", "triangle": "squared"},
        DEFAULTS,
    ),
    "ns_random": Call(kcenter.ns_random, QUERYING | {"interval": kcenter.KL(), "test_every": 4}, DEFAULTS),
    "ns_tands": Call(
        kcenter.ns_tands,
        TRACKING | {"tracking": "ratio", "reset": "stage", "mirror_steps": 10},
        DEFAULTS | {"mirror_steps": ("none",)},
    ),
    "track_and_stop": Call(kcenter.track_and_stop, TRACKING | {"test_every": 10}, DEFAULTS),
    "dimension_instance": Call(
        kcenter.dimension_instance,
        {"points": PIXELS, "k": 3, "levels": 16, "exact": kcenter.pairwise_sums(PIXELS), "rows": ROWS % 4},
        {"exact": ("none",), "rows": ("none",)},
    ),
    "distance_instance": Call(
        kcenter.distance_instance,
        {"distances": TABLE, "k": 3, "noise_scale": 0.1, "noise": "gaussian", "rows": ROWS},
        {"rows": ("none",)},
    ),
    "environment of dimensions": Call(
        kcenter.environment,
        {
            "instance": SAMPLED,
            "algorithm": kcenter.ds_random(SAMPLED.problem, delta=0.1, test_every=2),
            "stream": jax.random.key(0),
        },
        {"algorithm": ("none",), "stream": ("none",)},
    ),
    "environment of distances": Call(
        kcenter.environment,
        {
            "instance": NOISY,
            "algorithm": kcenter.ns_ts(NOISY.problem, delta=0.1, noise_scale=0.1),
            "stream": jax.random.key(0),
        },
        {"algorithm": ("none",), "stream": ("none",)},
    ),
    "is_right": Call(kcenter.is_right, {"instance": NOISY, "answer": ANSWER}),
    "centers_match": Call(kcenter.centers_match, {"indices": CENTERS, "truth": CENTERS}),
    "radius": Call(kcenter.radius, {"indices": CENTERS % 4, "distances": TABLE, "rows": ROWS}, {"rows": ("none",)}),
    "radius_ratio": Call(
        kcenter.radius_ratio,
        {"indices": ROWS[1:] % 3, "truth": ROWS[1:] % 3, "distances": TABLE, "rows": ROWS},
        {"rows": ("none",)},
    ),
    "pairwise_sums": Call(kcenter.pairwise_sums, {"points": POINTS}),
    "normalised_distances": Call(
        kcenter.normalised_distances,
        {"sums": SUMS, "m": 20, "levels": 16, "dtype": "float64"},
        {"levels": ("none",), "dtype": ("none",), "sums": ("shape", "scalar")},
    ),
    "greedy": Call(kcenter.greedy, {"distances": TABLE, "k": 3, "first_center": 0}),
    "greedy_from_points": Call(kcenter.greedy_from_points, {"points": PIXELS, "k": 3, "first_center": 0, "levels": 16}),
    "naive_greedy": Call(kcenter.naive_greedy, {"points": PIXELS, "k": 3, "first_center": 0, "levels": 16}),
    "naive_queries": Call(kcenter.naive_queries, SIZES),
    "most_queries": Call(kcenter.most_queries, SIZES),
    "lower_bound": Call(kcenter.lower_bound, TRUTH | DELTA),
    "upper_bound": Call(kcenter.upper_bound, TRUTH | DELTA | {"m": 20, "c": 1.0}),
    "characteristic_time": Call(kcenter.characteristic_time, {"means": MEANS, "noise_scale": 1.0}),
    "stage_times": Call(kcenter.stage_times, TRUTH | {"noise_scale": 0.1}),
    "noisy_lower_bound": Call(kcenter.noisy_lower_bound, TRUTH | DELTA | {"noise_scale": 0.1}),
    "exploration_rate": Call(
        kcenter.exploration_rate,
        {"rate": "gaussian", "n": 6, "k": 3, "delta": 0.1, "dtype": "float64"},
        {"dtype": ("none",)},
    ),
    "omega_newton": Call(kcenter.omega_newton, WEIGHTS | {"tolerance": 1e-4, "gap_floor": 1e-6}),
    "omega_mirror": Call(kcenter.omega_mirror, WEIGHTS | {"steps": 10, "gap_floor": 1e-6}),
    "clusters": Call(kcenter.clusters, {"n": 6, "m": 5, "n_clusters": 2, "spread": 0.1, "seed": 0}),
    "contrast_rows": Call(kcenter.contrast_rows, {"n": 6, "m": 5, "seed": 0}),
    "binary_rows": Call(kcenter.binary_rows, {"n": 6, "m": 5, "seed": 0}),
    "triplet_like": Call(
        kcenter.triplet_like,
        {"n": 5, "seed": 0, "dim": 2, "sharpness": 2.0, "reps": 1},
        {"sharpness": ("negative",)},
    ),
    "digits": Call(kcenter.digits, {"n": 5, "seed": 0}, {"n": ("none",), "seed": ("none",)}),
    "image_crops": Call(kcenter.image_crops, {"n": 3, "seed": 0, "size": 4, "augment": True}),
    "tiny_imagenet": Call(
        kcenter.tiny_imagenet, {"path": FOLDER, "n": 2, "start": 0, "cache": FOLDER}, {"cache": ("none", "string")}
    ),
    "zappos": Call(kcenter.zappos, {"path": FOLDER, "n": 5, "source": "matrix"}),
    "zappos_from_votes": Call(kcenter.zappos_from_votes, {"path": FOLDER}),
}
