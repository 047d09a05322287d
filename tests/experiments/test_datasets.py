import gzip

import numpy as np
import pytest
from scipy import stats

from experiments.linear import datasets

ARTICLE = [0.1, 0.2, 0.3, 0.25, 0.15, 1.0]
OTHER = [0.5, 0.1, 0.1, 0.2, 0.1, 1.0]
USER = [0.7, 0.05, 0.05, 0.1, 0.1, 1.0]


def block(name, features):
    """Writes a block of the log, in which the constant, feature 1, comes last."""
    tokens = [f"{index}:{value}" for index, value in zip([2, 3, 4, 5, 6, 1], features, strict=True)]
    return " ".join([f"|{name}", *tokens])


def line(shown="109513", click="1", user=USER, pool=(("109498", OTHER), ("109513", ARTICLE))):
    return " ".join([f"1241160900 {shown} {click}", block("user", user), *(block(*entry) for entry in pool)]) + "\n"


def in_order(features):
    return [features[-1], *features[:-1]]


Z = np.kron(in_order(ARTICLE), in_order(USER))
Z_OTHER = np.kron(in_order(OTHER), in_order(USER))

MALFORMED = {
    "empty": "\n",
    "no blocks": "1241160900 109513 1\n",
    "displayed article not in the pool": line(shown="109999"),
    "id that only begins alike": line(shown="10951"),
    "no user": line().replace("|user", "|visitor"),
    "click that is neither 0 nor 1": line(click="2"),
    "no click": line().replace(" 1 |user", " |user"),
    "five tokens": line(pool=[("109513", ARTICLE)]).replace(" 1:1.0\n", "\n"),
    "seven tokens": line(pool=[("109513", ARTICLE)]).replace("\n", " 7:0.0\n"),
    "another index": line(pool=[("109513", ARTICLE)]).replace("3:0.2", "7:0.2"),
    "the same index twice": line(pool=[("109513", ARTICLE)]).replace("3:0.2", "2:0.2"),
    "no number": line(pool=[("109513", ARTICLE)]).replace("3:0.2", "3:x"),
    "not a finite number": line(pool=[("109513", ARTICLE)]).replace("3:0.2", "3:nan"),
    "cut off": line()[:60],
    "not ASCII": "\xe9\xff\n",
}


def write(path, lines):
    """Writes one byte per character, ASCII or not; gzipped if the name ends in .gz."""
    with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
        file.write("".join(lines).encode("latin-1"))
    return path


@pytest.mark.parametrize("name", ["log", "log.gz"])
def test_load_r6a_by_hand(tmp_path, name):
    log = datasets.load_r6a(write(tmp_path / name, [line(), line(shown="109498", click="0"), line(click="0")]))
    np.testing.assert_allclose(log.gram, 2 * np.outer(Z, Z) + np.outer(Z_OTHER, Z_OTHER), rtol=1e-12)
    np.testing.assert_allclose(log.moment, Z - Z_OTHER - Z, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(log.sample, [Z, Z_OTHER, Z], rtol=1e-12)
    assert (log.displays, log.skipped) == (3, 0)


@pytest.mark.parametrize("reason", MALFORMED)
def test_load_r6a_skips_and_counts_malformed_lines(tmp_path, reason):
    log = datasets.load_r6a(write(tmp_path / "log", [line(), MALFORMED[reason]]))
    np.testing.assert_allclose(log.gram, np.outer(Z, Z), rtol=1e-12)
    np.testing.assert_allclose(log.sample, [Z], rtol=1e-12)
    assert (log.displays, log.skipped) == (1, 1)


def test_load_r6a_samples_uniformly(tmp_path):
    """Every display is kept with probability 4/20. False alarms: 1e-5."""
    path = write(tmp_path / "log", [line(user=[float(i), *USER[1:]]) for i in range(20)])
    # Feature 2 of the user times the constant of the article is the number of the line.
    numbers = np.concatenate([datasets.load_r6a(path, sample=4, seed=seed).sample[:, 1] for seed in range(400)])
    kept = np.bincount(np.round(numbers).astype(int), minlength=20)
    assert kept.sum() == 1600
    # Draws without replacement: a count has variance 400 * 0.2 * 0.8, two have correlation -1/19.
    assert stats.chi2(19).sf(np.sum((kept - 80) ** 2) / 64 * 19 / 20) > 1e-5


def test_load_r6a_refuses_a_log_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="path must name a file, got '.*nowhere'"):
        datasets.load_r6a(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="path must name a log with at least one line in the format of R6A"):
        datasets.load_r6a(write(tmp_path / "log", MALFORMED.values()))
    with pytest.raises(ValueError, match="sample must be at least 1, got 0"):
        datasets.load_r6a(write(tmp_path / "log", [line()]), sample=0)


@pytest.fixture(scope="module")
def simulated_log(tmp_path_factory):
    """Loads a log of 2000 displays of 10 articles whose click probability is bilinear in the features."""
    rng = np.random.default_rng(0)
    articles = np.column_stack([rng.dirichlet(np.full(5, 0.5), 10), np.ones(10)])
    lines = []
    for _ in range(2000):
        shown, user = rng.integers(10), np.append(rng.dirichlet(np.full(5, 0.5)), 1.0)
        click = str(int(rng.random() < 0.1 + 0.8 * articles[shown, 0] * user[0]))
        lines.append(line(str(shown), click, user, [(str(shown), articles[shown])]))
    return datasets.load_r6a(write(tmp_path_factory.mktemp("r6a") / "log.gz", lines), sample=500)


def test_r6a_instance_has_fitted_theta_distinct_means_and_arms_of_the_log(simulated_log):
    instance = datasets.r6a_instance(simulated_log, 1, 10)
    ridge_fit = np.linalg.inv(simulated_log.gram + 0.01 * np.eye(36)) @ simulated_log.moment
    np.testing.assert_allclose(instance.theta, ridge_fit, rtol=1e-8)
    means = np.sort(instance.arms @ instance.theta)
    assert means[-1] - means[-2] >= 0.05
    assert np.abs(means).max() < 1
    assert {tuple(arm) for arm in np.asarray(instance.arms)} <= {tuple(z) for z in simulated_log.sample}
    assert not np.array_equal(instance.arms, datasets.r6a_instance(simulated_log, 2, 10).arms)
    # The fit shows the law of the log: if user and article are both of the first kind, clicks are many.
    both, neither = (np.kron(x, x) @ ridge_fit for x in (np.eye(6)[1] + np.eye(6)[0], np.eye(6)[2] + np.eye(6)[0]))
    assert both - neither > 0.8


DIMENSIONS = {"digits": 25, "diabetes": 11, "wine": 14, "breast_cancer": 31}


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("K", [10, 40])
def test_real_features_have_distinct_arms_and_a_gap(name, K):
    instance = datasets.real_features(name, 0, K)
    arms, means = np.asarray(instance.arms), np.sort(instance.arms @ instance.theta)
    assert arms.shape == (K, DIMENSIONS[name])
    np.testing.assert_allclose(arms[:, -1], 1, rtol=1e-14)
    assert len(np.unique(arms, axis=0)) == K
    assert means[-1] - means[-2] >= 0.05
    assert np.abs(means).max() < 1
    np.testing.assert_array_equal(arms, datasets.real_features(name, 0, K).arms)


def test_digits_are_items_times_contexts():
    features, shows = datasets._digits()
    z = features.reshape(10, -1, 5, 5)
    items, contexts = z[:, 0, :, 4], z[0, :, 4, :]
    np.testing.assert_allclose(z, np.einsum("ai,uj->auij", items, contexts), atol=1e-12)
    for x in (items, contexts):
        np.testing.assert_allclose(np.mean(np.sum(x[:, :4] ** 2, axis=1)), 1, rtol=1e-12)
    # Every image shows one digit, and a digit's features are the mean of its images', up to the two scales.
    shows = shows.reshape(10, -1)
    np.testing.assert_array_equal(shows.sum(axis=0), 1)
    means = np.stack([contexts[shown, :4].mean(axis=0) for shown in shows])
    np.testing.assert_allclose(items[:, :4] / items[0, 0], means / means[0, 0], rtol=1e-9)


def test_real_features_refuse_an_unknown_name():
    with pytest.raises(ValueError, match="name must be one of digits, diabetes, wine, breast_cancer, got 'iris'"):
        datasets.real_features("iris", 0, 10)
