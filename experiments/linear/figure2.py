"""Figure 2 of Xu, Honda, Sugiyama (2018): stopping time against the gap, with five canonical arms.

theta = (gap, 0, 0, 0, 0), gap = 0.1 .. 0.5; delta = 0.05, standard normal noise. The figure has no printed values; the
claims check what the text says about it. All gaps of an algorithm are one sweep, round by round. Their stopping times
differ by a factor of thirty, yet the lanes stay busy.
"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import above
from experiments.linear import common as runs
from experiments.report import Claim, Report, listed, means
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import linear

GAPS = (0.1, 0.2, 0.3, 0.4, 0.5)


def run(options: Settings) -> Report:
    arms = linear.canonical(GAPS[0]).arms
    gaps = jnp.asarray(GAPS)
    allocation = linear.xy_allocation(arms).allocation
    seeds = options.seeds or (200 if options.quick else 2000)

    def instance(gap: jax.Array) -> linear.Instance:
        return linear.Instance(arms, jnp.zeros(5).at[0].set(gap), jnp.ones(()))

    def adaptive(gap: jax.Array, key: jax.Array):
        rule = linear.lingape(arms, delta=runs.DELTA)
        return rule, linear.environment(instance(gap), rule)

    def static(gap: jax.Array, key: jax.Array):
        rule = linear.xy_static(arms, allocation, delta=runs.DELTA)
        return rule, linear.environment(instance(gap), rule)

    cases = [linear.canonical(gap) for gap in GAPS]
    bounds = [runs.bound(case) for case in cases]
    sweeps = {
        "LinGapE": simulate("figure 2: LinGapE", adaptive, gaps, options=options, seeds=seeds, max_rounds=10**7),
        "XY-static": simulate(
            "figure 2: XY-static", static, gaps, options=options, seeds=min(seeds, 400), max_rounds=100_000
        ),
        "XY-oracle": [runs.oracle_line("", case) for case in cases],
    }
    bound_of = dict(zip(GAPS, bounds, strict=True))
    cells = study.collected(
        {"rule": sweeps, "gap": GAPS},
        sweeps,
        rows="gap",
        name="{rule}, gap {gap}",
        more=lambda rule, gap: {"bound": bound_of[gap]},
    )
    lingape, static_pulls, oracle = map(means, study.by(cells, "rule").values())
    ratio, ahead, scaled = static_pulls / lingape, static_pulls - lingape, lingape * np.square(GAPS)
    following = np.minimum(static_pulls, oracle) / lingape

    return study.report(
        "Figure 2 of Xu, Honda, Sugiyama (2018): pulls against the gap",
        cells,
        [
            above("LinGapE needs the fewest pulls at every gap (the next over LinGapE)", following, form=".2f"),
            Claim("its advantage grows as the gap shrinks, as a difference", listed(ahead), np.all(np.diff(ahead) < 0)),
            Claim(
                "its advantage grows as the gap shrinks, as a ratio (by more than 10 %)",
                listed(ratio, ".2f"),
                ratio[0] > 1.1 * ratio[-1],
            ),
            Claim(
                "pulls x gap^2 falls slowly in the gap",
                listed(scaled, ".0f"),
                np.all(np.diff(scaled) < 0) and scaled[-1] > scaled[0] / 2,
            ),
            runs.delta_is_kept(list(cells.sweeps.values()), cases[0]),
        ],
        draw=study.figure(
            cells,
            "gap",
            references={"T* kl, the lower bound": bounds},
            x_ticks=True,
            xscale="log",
            yscale="log",
            title="Figure 2: five canonical arms",
        ),
    )
