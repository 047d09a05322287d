"""Rules and exact errors that the tests of this folder share."""

import numpy as np
from scipy import integrate, stats

from jaxbandits import linear, mab
from jaxbandits.numerics import thresholds


def rejects(horizon):
    """Pulls two arms equally often, and answers by the larger mean."""

    def build(instance, key):
        algorithm = mab.successive_rejects(instance.problem, horizon=horizon)
        return algorithm, mab.environment(instance, algorithm)

    return build


def rule(factory, delta, **more):
    """Makes a rule of fixed confidence with the threshold gk16."""

    def build(instance, key):
        arms = instance.problem.arms
        algorithm = factory(instance.problem, delta=delta, threshold=thresholds.gk16(arms=arms), **more)
        return algorithm, mab.environment(instance, algorithm)

    return build


def lingape(delta, leap=1):
    def build(instance, key):
        algorithm = linear.lingape(instance.arms, delta=delta, noise_scale=instance.noise_scale, leap=leap)
        return algorithm, linear.environment(instance, algorithm)

    return build


def wrong_at_once(means, delta, scale=1.0):
    """Computes P(stop after one pull of each arm with answer j), for likelihood ratios: {j: probability}."""
    means, K = np.asarray(means, float) / scale, len(means)
    threshold = float(thresholds.gk16(arms=K)(delta, thresholds.Evidence(pulls=K)))
    gap = np.sqrt(4 * threshold)

    def exact(j):
        def density(x):
            others = [stats.norm.cdf(x - gap - means[a]) for a in range(K) if a != j]
            return stats.norm.pdf(x - means[j]) * np.prod(others)

        return integrate.quad(density, means[j] - 2, means[j] + 15, epsabs=0, epsrel=1e-9, limit=500)[0]

    return {j: exact(j) for j in range(K) if j != int(means.argmax())}
