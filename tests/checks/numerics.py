"""Valid calls of every function of `numerics` that checks its arguments."""

import numpy as np
from checks.calls import Call

from jaxbandits.numerics import barrier, densest_subgraph, design, gp, l1, matroid, mirror_ascent, thresholds, tracking

SQUARE = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
SKEW = np.array([[2.0, 1.0, 0.0], [0.5, 2.5, 1.0], [0.0, 0.75, 3.0]])
SHARES = np.array([0.5, 0.25, 0.25])
X = np.array([0.1, 0.2])

CALLS = {
    "minimize_reciprocals": Call(
        barrier.minimize_reciprocals,
        {
            "limits": np.ones((2, 3)),
            "row_costs": np.ones(2),
            "column_costs": np.ones(3),
            "mask": np.ones((2, 3), bool),
            "tolerance": 1e-4,
            "max_steps": 40,
        },
        fine={
            "limits": ("inf_inside",),  # an infinite limit is no limit
            "row_costs": ("none",),
            "column_costs": ("none",),
            "mask": ("none",),
        },
    ),
    "quadratic_maximization": Call(
        densest_subgraph.quadratic_maximization, {"W": SQUARE, "k": 2, "reduction": "exact"}
    ),
    "alpha_dks": Call(densest_subgraph.alpha_dks, {"n": 5, "k": 3}),
    "theorem1_ratio": Call(densest_subgraph.theorem1_ratio, {"W": SQUARE, "k": 3}),
    "design": Call(
        design.design,
        {"arms": SKEW, "directions": SKEW, "weights": np.ones(3), "steps": 10},
        fine={"weights": ("none",)},
    ),
    "decompose": Call(l1.decompose, {"atoms": SQUARE, "target": SHARES}),
    "uniform": Call(matroid.uniform, {"k": 2}, {"k": ("large",)}),
    "partition": Call(matroid.partition, {"groups": np.array([0, 0, 1]), "capacities": np.array([1, 1])}),
    "graphic": Call(matroid.graphic, {"edges": np.array([[0, 1], [1, 2], [0, 2]])}),
    "mirror_ascent": Call(mirror_ascent.mirror_ascent, {"step_size": 0.1}),
    "ascend": Call(
        mirror_ascent.ascend,
        {
            "supergradient": lambda weights: -weights,
            "log_weights": np.log(SHARES),
            "transformation": mirror_ascent.mirror_ascent(0.1),
            "steps": 3,
        },
    ),
    "tracked_counts": Call(
        tracking.tracked_counts,
        {"allocation": SHARES, "n": 10},
        fine={"allocation": ("nan_inside", "inf_inside", "negative")},  # a failed design has such entries
    ),
    "round_allocation": Call(
        tracking.round_allocation,
        {"allocation": SHARES, "n": 10},
        fine={"allocation": ("nan_inside", "inf_inside", "negative")},
    ),
    "gk16": Call(thresholds.gk16, {"arms": 3, "comparisons": 2.0}, fine={"arms": ("none",)}),
    "log_t": Call(thresholds.log_t, {"arms": 3, "comparisons": 2.0}, fine={"arms": ("none",)}),
    "gk_union": Call(thresholds.gk_union, {"arms": 3, "comparisons": 2.0}),
    "kl_lucb": Call(thresholds.kl_lucb, {"arms": 3, "exponent": 1.1, "constant": 405.5}),
    "kt": Call(thresholds.kt, {"arms": 3, "comparisons": 2.0}, fine={"arms": ("none",), "comparisons": ("none",)}),
    "kk_pair": Call(
        thresholds.kk_pair, {"arms": 3, "comparisons": 2.0}, fine={"arms": ("none",), "comparisons": ("none",)}
    ),
    **{
        made.__name__: Call(
            made,
            {"scale": 2.0, "arms": 3, "comparisons": 2.0},
            fine={"arms": ("none",), "comparisons": ("none",)},
        )
        for made in (thresholds.poisson_mixture, thresholds.exponential_mixture)
    },
    "student": Call(
        thresholds.student,
        {"prior": 2.0, "arms": 3, "comparisons": 2.0},
        fine={"arms": ("none",), "comparisons": ("none",)},
    ),
    "uv_box": Call(
        thresholds.uv_box, {"arms": 3, "comparisons": 2.0}, fine={"arms": ("none",), "comparisons": ("none",)}
    ),
    **{
        made.__name__: Call(
            made,
            {"arms": 3, "comparisons": 2.0, "reads": "pulls"},
            fine={"arms": ("none",), "comparisons": ("none",)},
        )
        for made in (thresholds.box, thresholds.box_sharp)
    },
    "kk_all": Call(thresholds.kk_all, {"arms": 3}),
    "ellipsoid": Call(
        thresholds.ellipsoid,
        {"norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0, "arms": 3},
        fine={"arms": ("none",)},
    ),
    "ellipsoid_trace": Call(
        thresholds.ellipsoid_trace,
        {"dimension": 2, "arm_norm": 1.0, "norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0, "arms": 3},
        fine={"arms": ("none",)},
    ),
    "jp": Call(
        thresholds.jp,
        {"dimension": 2, "ridge": 1.0, "least": 0.5, "excess": 0.1, "arms": 3},
        fine={"arms": ("none",)},
    ),
    "jp_heuristic": Call(thresholds.jp_heuristic, {"dimension": 2, "excess": 0.1, "arms": 3}, fine={"arms": ("none",)}),
    # The points are not checked: they are one pair of many, in a loop over all of them.
    "Matern": Call(
        lambda **parameters: gp.Matern(**parameters)(X, X), {"lengthscale": 0.2, "nu": 1.5, "variance": 2.0}
    ),
    "SquaredExponential": Call(
        lambda **parameters: gp.SquaredExponential(**parameters)(X, X), {"lengthscale": 0.2, "variance": 2.0}
    ),
}
