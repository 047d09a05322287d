"""What is wrong in the papers, as far as an implementation notices, and what is done here instead."""

from typing import NamedTuple


class Erratum(NamedTuple):
    """One slip, or one claim that does not hold."""

    where: str
    printed: str
    right: str
    shown_by: str = ""  # an experiment, or a test


ERRATA: dict[str, tuple[Erratum, ...]] = {
    "linear": (
        Erratum(
            "Theorem 3",
            "H_0 ≤ 72 H'",
            "False: the last step of the proof sums shares p_k over pairs that depend on k. A counterexample reaches "
            "116.7. What holds: 9 H_oracle ≤ H_0 ≤ 36 K H_oracle.",
            "linear_theorem3",
        ),
        Erratum(
            "(15)",
            "ρ is the l1 norm of w*",
            "Its square: Appendix B and the example with ρ = 4 need it.",
            "tests/linear/test_ratios.py",
        ),
        Erratum("Lemma 1", "T_k ≤ p_k T_ij", "T_k ≥ p_k T_ij."),
        Erratum("(14)", "arg min", "min."),
        Erratum(
            "(1)", "the answer is bad if it is worse by at least ε", "By more than ε: at ε = 0 the best arm would fail."
        ),
        Erratum(
            "Proposition 1",
            "the event with ≥, and a factor 2σ",
            "≤; and σ suffices, which matters where the fixed designs are compared with LinGapE.",
            "linear_width",
        ),
        Erratum("Theorem 2", "the root of its quadratic", "(a + sqrt(a² + 4N))/2; the printed one is only larger."),
    ),
    "fullbandit": (
        Erratum(
            "Algorithm 3, SA-FOA",
            "what it computes bounds (5) from above",
            "It maximises over the super-arms that it has found, so it bounds (5) from below and may stop before (5) "
            "permits: it is not (ε, δ)-PAC by this argument.",
            "fullbandit_certified",
        ),
        Erratum(
            "Algorithm 3",
            "F ← {} within the inner loop",
            "Before it: printed so, only the last draw counts.",
        ),
        Erratum(
            "Algorithm 4, ICB",
            "one greedy run solves P1",
            "Without the best super-arm the class is no matroid: it takes a greedy run for each of its arms left out.",
        ),
        Erratum(
            "Algorithm 2, SAQM",
            "Z_t contains C_t, and (4) multiplies by C_t again",
            "One C_t.",
        ),
        Erratum(
            "section 5, α = 0.9",
            "peeling reaches 0.9 of the widest super-arm",
            "On supports of 2n super-arms, with which Table 2 comes out, it falls short, and Lemma 8 does not hold.",
            "fullbandit_figure1",
        ),
        Erratum("Lemma 5", "w ≤ w̃", "Fails for k = 2, holds for k ≥ 3.", "tests/numerics/test_densest_subgraph.py"),
        Erratum("Lemma 7", "cond(A_t) = O(k)", "The constant hides 1/λ_min: 43 to 175 at s = 2n, up to 4e5 at s = n."),
        Erratum("Corollary 1", "its closed form", "Drops a factor 2: log L bounds log √τ', not log τ'."),
        Erratum(
            "Proposition 1, Lemma 1",
            "the union over t with c' = 6/π²",
            "It needs π²/6 (0.8 % of C_t at the sizes of Table 2); Lemma 1 lacks the factor 2 of two sides. Kept as "
            "printed; log_sets= overrides.",
        ),
        Erratum("Algorithm 5", "χ of M*", "χ of the empirical best, M̂*."),
        Erratum(
            "section 5",
            "more than 10^10 super-arms in all experiments; Δ_min < 0.1",
            "The quiz “it” has 2.5e8, “medicine” 3.2e9; the gap is 0 in five of six.",
            "fullbandit_table1",
        ),
    ),
    "kcenter": (
        Erratum(
            "Theorem 2",
            "the bottleneck distance is optimal up to a factor 2",
            "In the metric. The d of section IV is a squared distance: up to a factor 4.",
        ),
        Erratum(
            "(22), C = 0.1",
            "a confidence interval at level δ",
            "A heuristic: on binary points it errs far more often than in a share δ of runs, which the intervals of "
            "Lemma 1 and of relative entropies do not.",
            "kcenter_errors",
        ),
        Erratum(
            "section VI-B",
            "DS-TS can provide significant benefits",
            "Its Tables I to IV show DS-TS at 2.4 to 4.7 times the queries of DS-UCB; the difference is that of the "
            "intervals, not of the rules.",
            "kcenter_table5",
        ),
        Erratum(
            "Theorem 5",
            "mirror ascent with the step (1/L) sqrt(2 log N / z)",
            "1000 such steps leave the weights nearly uniform; it needs about (L T*)² log N.",
            "tests/kcenter/test_weights.py",
        ),
        Erratum(
            "Appendix C",
            "ω as printed",
            "An iterate that has not converged, 1.26 % off: the optimum has T* = 1085.694.",
            "tests/kcenter/test_weights.py",
        ),
        Erratum("(3)", "max", "arg max."),
        Erratum("(4)", "the reward is squared", "Once, as in section IV: (x_vj − x_sj)²."),
        Erratum(
            "Theorem 2",
            "the sum runs to i = k",
            "The last maximum is over no arm; the inner log is undefined for x ≥ 2.",
        ),
    ),
    "cpe": (
        Erratum(
            "Lemma 3, concave rewards",
            "φ is bi-monotone, so that two calls of the oracle decide",
            "With decreasing marginal values the Lagrange point is a minimum and φ is not bi-monotone: with constant "
            "arms the two-call test never stops, where the exact one does.",
            "cpe_two_call",
        ),
        Erratum(
            "Algorithm 2",
            "d_i = ⌈θ_i⌉",
            "1 − x_i where x_i < 1: a variance of 0 makes it 0, though one interview is forced, and COCI never stops.",
            "cpe_osa",
        ),
        Erratum("Theorem 2, proof", "H = Σ 1/Λ_i", "H = Σ 1/Λ_i²."),
        Erratum(
            "Theorem 1, proof",
            "Λ_i ≤ 1",
            "An arm that matters nowhere has Λ_i = ∞; it costs at most τ − 1 pulls beyond the bound.",
        ),
        Erratum(
            "section 5",
            "COCI matches CLUCB",
            "Its bound does; in pulls CLUCB with COCI's radius needs fewer.",
            "cpe_easy_arms",
        ),
    ),
    "kernel": (
        Erratum("Algorithm 1, line 6", "X_{j−1}", "X_j, as in section 3."),
        Erratum("Algorithm 1, line 9", "t > T", "t ≥ T: one query too many."),
        Erratum("Algorithm 2, line 10", "D_j^(n)", "D_j, as in (8)."),
        Erratum(
            "p_0",
            "72 log(4NT/δ'), 72 log(4N/δ) and 10",
            "10, the value of the experiments. Theorem 4.1 needs the first, which makes every point an inducing one.",
        ),
        Erratum(
            "footnote 3",
            "T_j points in each connected component",
            "That breaks the horizon; X_j is sampled from all that is left.",
        ),
        Erratum("(4) and (6)", "variances with and without 1/λ", "Variance always means (4), and the bracket of (6)."),
        Erratum("(9), Lemma 4.2, A.1", "three forms of log log", "log log(NT); the first is −∞ at N = 1."),
        Erratum("Lemma 4.5", "without p_0, and at the end of its proof without C", "With both."),
        Erratum("Lemma 4.2", "σ_j over X_{j−1}", "σ_{j−1}."),
    ),
}
