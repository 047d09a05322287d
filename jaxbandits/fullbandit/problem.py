"""Top-k identification from sums: its instances, the action of its algorithms, and the environments that answer.

n arms have unknown means theta. A super-arm is a set of exactly k of them; a pull of it pays the sum of one reward of
each, and only this sum is seen. Wanted is the super-arm of the largest mean.
"""

import csv
import json
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import is_concrete, known, require, require_not_negative
from jaxbandits.fullbandit.design import Design, check_design

MAX_DRAWS = 10_000  # draws of a random instance after which what was asked for is declared out of reach
TOLERANCE = 1e-9  # values of super-arms that differ by less are equal

# The quizzes of `crowdsourcing`, and the folders of the published files that `load_correct` reads.
FOLDERS = {
    "it": "ITMANAGE",
    "medicine": "MEDICINE",
    "chinese": "CHINESE",
    "pokemon": "POKEMON",
    "english": "ENGLISH",
    "science": "SCIENCE",
}


class Instance(NamedTuple):
    """One instance, truth included. To `vmap` over instances of one shape, map over theta: k is part of the shape."""

    theta: Array  # float (n,)   means of the arms, the truth: never given to a factory
    k: int  # arms in a super-arm


class Block(NamedTuple):
    """Pulls super-arm i of the design `counts[i]` times. The observation is the sum of its rewards, float (s,)."""

    counts: Array  # int (s,)
    hazard: Array  # float ()   SA-FOA's note to its own `observe`, 0 elsewhere; no environment reads it


class Crowd(NamedTuple):
    """How many questions of a quiz each worker answered correctly."""

    correct: np.ndarray  # int (n,)
    questions: int


# Environments


def gaussian(
    instance: Instance, design: Design, *, scale: Array | float = 1.0, per: Literal["arm", "pull"] = "arm"
) -> Environment:
    """Rewards with independent Gaussian noise.

    Any number of pulls of a super-arm costs one normal variable, because m of them sum to N(m theta(M), m v): exact in
    law for every m.

    Args:
        instance: the instance.
        design: its super-arms are those that can be pulled; its dtype is that of the observations.
        scale: () >= 0, standard deviation of the noise, in units of reward.
        per: "arm" if every arm of a super-arm has noise of its own, so that v = k scale^2 (the paper); "pull" if the
            sum has it only once, so that v = scale^2.

    Returns:
        Environment. Its noise is standard normal (s,), its observation to a `Block` float (s,), exactly 0 for what is
        not pulled. Cost per round: O(s).

    Raises:
        ValueError: theta is not a finite vector of the design's arms, k is not the size of its super-arms, `scale` is
            negative, or `per` is unknown.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), section 5.
    """
    require(per in ("arm", "pull"), "per", "be 'arm' or 'pull'", per)
    require_not_negative("scale", scale)
    theta, support = _truth(instance, design)
    dtype = support.dtype
    variance = support.sum(axis=1) if per == "arm" else jnp.ones(support.shape[0], dtype)
    deviation = jnp.asarray(scale, dtype) * jnp.sqrt(variance)
    return _normal(_sums(support, theta), deviation)


def bernoulli(instance: Instance, design: Design, *, sampler: Literal["exact", "normal"] = "exact") -> Environment:
    """Right or wrong answers: a pull of a super-arm counts the successes of its arms, each with probability theta_e.

    Args:
        instance: the instance, with theta in [0, 1]; its k is a Python int.
        design: its super-arms are those that can be pulled; its dtype is that of the observations.
        sampler: "exact" draws a block's number of successes from its law, one binomial variable for each arm of each
            super-arm. "normal" draws the normal variable of the same mean and variance; on crowdsourced quizzes no
            stopping time told the two apart (60 runs each: 50.60 +- 0.03 and 50.59 +- 0.03 million pulls of ICB).

    Returns:
        Environment. Its noise is the round's key for "exact", standard normal (s,) for "normal"; its observation to a
        `Block` is float (s,), exactly 0 for what is not pulled. Cost per round: s k binomial variables, of O(1) each,
        or O(s).

    Raises:
        ValueError: theta is not a vector of the design's arms within [0, 1], k is not the size of its super-arms,
            `sampler` is unknown, or exact sums are asked for while `jax_enable_x64` is off: in 32 bit JAX's binomial
            sampler is wrong for large counts (10^7 trials at 0.51 gave a variance 6 per cent too low).
    """
    require(sampler in ("exact", "normal"), "sampler", "be 'exact' or 'normal'", sampler)
    theta, support = _truth(instance, design)
    dtype = support.dtype
    require((known(instance.theta) >= 0) & (known(instance.theta) <= 1), "theta", "lie in [0, 1]", instance.theta)
    if sampler == "normal":
        # A traced theta could not be checked above: what has no law must not pass for a reward.
        lawful = (theta >= 0) & (theta <= 1)
        variance = jnp.where(lawful, theta * (1 - theta), jnp.nan)
        return _normal(_sums(support, theta), jnp.sqrt(_sums(support, variance)))

    _require_64_bit()
    # On the host where it is known: XLA would sort a constant at compile time, and take long over it.
    rows, xp = (np.asarray(support), np) if is_concrete(support) else (support, jnp)
    members = xp.argsort(-rows, axis=1, stable=True)[:, : instance.k]
    probability = jnp.asarray(instance.theta, jnp.float64)[members]

    def respond(block: Block, noise: Key) -> Array:
        trials = block.counts.astype(jnp.float64)[:, None]
        return jax.random.binomial(noise, trials, probability).sum(axis=1).astype(dtype)

    return Environment(lambda key: key, respond)


def replay(correct: Array | np.ndarray, design: Design) -> Environment:
    """Real answers: a pull draws one question of a quiz and counts the workers of the super-arm who got it right.

    The means are those of `bernoulli` with the workers' accuracies; the noise is correlated over the workers, because
    what is hard for one is hard for another.

    Args:
        correct: bool (Q, n), which answers were right, from `load_correct`.
        design: its super-arms are those that can be pulled; its dtype is that of the observations.

    Returns:
        Environment. Its noise is the round's key; its observation to a `Block` is float (s,), exact in law and exactly
        0 for what is not pulled. Cost per round: s Q binomial variables, of O(1) each.

    Raises:
        ValueError: `correct` is not a (Q, n) array of zeros and ones on the design's arms, or `jax_enable_x64` is off.
    """
    support, shape = jnp.asarray(design.support), jnp.shape(correct)
    dtype, n = support.dtype, support.shape[1]
    require(len(shape) == 2 and shape[0] >= 1 and shape[1] == n, "correct", f"have shape (Q, {n})", shape)
    if is_concrete(correct):
        require(np.isin(np.asarray(correct), (0, 1)), "correct", "hold zeros and ones only", correct)
    _require_64_bit()
    answers = jnp.asarray(correct).astype(jnp.float64)
    scores = jnp.matmul(support.astype(jnp.float64), answers.T, precision="highest")
    probability = jnp.full(scores.shape, 1 / shape[0])

    def respond(block: Block, noise: Key) -> Array:
        asked = jax.random.multinomial(noise, block.counts.astype(jnp.float64), probability)
        return (asked * scores).sum(axis=1).astype(dtype)

    return Environment(lambda key: key, respond)


def _normal(means: Array, deviations: Array) -> Environment:
    dtype = means.dtype

    def respond(block: Block, noise: Array) -> Array:
        counts = block.counts.astype(dtype)
        return counts * means + jnp.sqrt(counts) * deviations * noise

    return Environment(lambda key: jax.random.normal(key, means.shape, dtype), respond)


def _truth(instance: Instance, design: Design) -> tuple[Array, Array]:
    """The means (n,) and the super-arms (s, n), both in the dtype of the design."""
    require(is_concrete(instance.k), "k", "be a Python int", instance.k)
    check_design(design, instance.k)
    support = jnp.asarray(design.support)
    n = support.shape[1]
    require(jnp.shape(instance.theta) == (n,), "theta", f"have shape ({n},)", jnp.shape(instance.theta))
    if is_concrete(instance.theta):
        require(np.isfinite(np.asarray(instance.theta)), "theta", "be finite", instance.theta)
    return jnp.asarray(instance.theta).astype(support.dtype), support


def _sums(support: Array, values: Array) -> Array:
    return jnp.matmul(support, values, precision="highest")


def _require_64_bit() -> None:
    has_64_bit = jnp.result_type(float) == jnp.float64
    require(has_64_bit, "jax_enable_x64", "be on for binomial sums", has_64_bit)


# The value of an answer


def loss(answer: Array, theta: Array, k: int) -> Array:
    """How much less the answer is worth than the best super-arm.

    Where arms tie there are several best super-arms, so an answer is judged by its value, never by its members.

    Args:
        answer: bool (n,), k of them true.
        theta: (n,), float means, or integer counts for an exact result.
        k: arms in a super-arm.

    Returns:
        theta(M*) - theta(answer), (), of theta's dtype.

    Raises:
        ValueError: the shapes differ or k is not in 2..n-1.
    """
    theta = jnp.asarray(theta)
    require(theta.ndim == 1, "theta", "have shape (n,)", theta.shape)
    require(jnp.shape(answer) == theta.shape, "answer", f"have shape {theta.shape}", jnp.shape(answer))
    _check_k(k, theta.shape[0])
    best = jnp.sort(theta, descending=True)[:k].sum(dtype=theta.dtype)
    return best - jnp.where(answer, theta, 0).sum(dtype=theta.dtype)


def is_optimal(answer: Array, theta: Array, k: int, *, epsilon: Array | float = 0.0) -> Array:
    """Whether the answer is a super-arm that is worth as much as the best one, up to epsilon.

    Args:
        answer: bool (n,).
        theta: (n,), float means, or integer counts, which are compared exactly.
        k: arms in a super-arm.
        epsilon: () >= 0, admitted loss, in units of theta.

    Returns:
        bool (). Means are compared up to 1e-9, in 32 bit up to the rounding of k terms. A set of another size than k
        is never optimal.

    Raises:
        ValueError: the shapes differ, k is not in 2..n-1, or `epsilon` is negative.
    """
    require_not_negative("epsilon", epsilon)
    lost = loss(answer, theta, k)
    admitted = jnp.asarray(epsilon).astype(lost.dtype)
    if jnp.issubdtype(lost.dtype, jnp.floating):
        admitted += max(TOLERANCE, 2 * k * float(jnp.finfo(lost.dtype).eps))
    return (jnp.sum(answer) == k) & (lost <= admitted)


# Instances


def synthetic(seed: int, n: int, k: int, gap: float, *, shuffle: bool = False, dtype: Any = None) -> Instance:
    """Random means whose k-th and (k+1)-th largest differ by `gap`.

    The k best means are uniform on [0, 1], the next one lies `gap` below the least of them, and all others are uniform
    between -1 and that one.

    Args:
        seed: of `numpy.random.default_rng`.
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.
        gap: in [0, 1].
        shuffle: whether the arms are put in a random order; otherwise the first k are the best, where a rule that
            breaks ties by the index has an advantage.
        dtype: dtype of theta; by default JAX's own.

    Returns:
        Instance.

    Raises:
        ValueError: `k` or `gap` is out of range.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), section 5.1.
    """
    _check_k(k, n)
    require(0 <= gap <= 1, "gap", "lie in [0, 1]", gap)
    rng = np.random.default_rng(seed)
    best = rng.uniform(0, 1, k)
    next_best = best.min() - gap
    theta = np.concatenate([best, [next_best], rng.uniform(-1, next_best, n - k - 1)])
    return _instance(rng.permutation(theta) if shuffle else theta, k, dtype)


def crowdsourcing(name: str, *, k: int = 10, dtype: Any = None) -> Instance:
    """The workers of a real crowdsourced quiz; their means are their accuracies.

    In all but "pokemon" workers 10 and 11 tie, so there are several best super-arms of size 10: see `is_optimal`.

    Args:
        name: "it" (n = 36 workers), "medicine" (45), "chinese" (50), "pokemon" (55), "english" (63) or "science" (111).
        k: arms in a super-arm.
        dtype: dtype of theta; by default JAX's own.

    Returns:
        Instance, to be run with `bernoulli`.

    Raises:
        ValueError: `name` is unknown or `k` is out of range.

    Source: Li, Baba and Kashima (2017), Hyper Questions, doi 10.1145/3132847.3132971, and Li (2024), doi
    10.1109/ICASSP48485.2024.10447803; data licensed CC BY 4.0. Used by Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020),
    table 1.
    """
    correct, questions = crowdsourcing_counts(name)
    _check_k(k, len(correct))
    return _instance(correct / questions, k, dtype)


def crowdsourcing_counts(name: str) -> Crowd:
    """The integers behind `crowdsourcing`, for scores free of rounding.

    Args:
        name: as in `crowdsourcing`.

    Returns:
        Crowd, its workers in the order of the instance's arms.

    Raises:
        ValueError: `name` is unknown.
    """
    require(name in FOLDERS, "name", f"be one of {', '.join(FOLDERS)}", name)
    text = resources.files("jaxbandits.fullbandit").joinpath("crowdsourcing.json").read_text(encoding="utf-8")
    entry = json.loads(text)["sets"][name]
    return Crowd(np.array(entry["correct"]), entry["questions"])


def crowd_like(
    seed: int, workers: int, tasks: int, average: float, best: float, *, k: int = 10, dtype: Any = None
) -> Instance:
    """Simulated workers of a quiz with a given size, average and best accuracy, for sizes that real data lack.

    Accuracies are Beta variables of concentration 4, scaled to [0, best] and rounded to multiples of 1/tasks. One
    worker is set to the best, single answers of random others are flipped until the sum is right, and all is redrawn
    until worker k beats worker k+1.

    Args:
        seed: of `numpy.random.default_rng`.
        workers: number of arms n.
        tasks: number of questions, at least 1.
        average: mean accuracy, in (0, best); rounded so that the correct answers of all workers are a whole number.
        best: largest accuracy, in (0, 1]; rounded to a multiple of 1/tasks.
        k: arms in a super-arm, in 2..n-1.
        dtype: dtype of theta; by default JAX's own.

    Returns:
        Instance, to be run with `bernoulli`.

    Raises:
        ValueError: an argument lies outside its range, `average` cannot be met with a single best worker given, or no
            draw parts worker k from worker k+1.
    """
    _check_k(k, workers)
    require(tasks >= 1, "tasks", "be at least 1", tasks)
    require(0 < best <= 1, "best", "lie in (0, 1]", best)
    require(0 < average < best, "average", f"lie in (0, {best})", average)
    top, total = round(best * tasks), round(average * tasks * workers)
    require(top >= 1, "best", f"be at least one of {tasks} tasks", best)
    require(
        top <= total <= top * workers,
        "average",
        f"give a sum of correct answers in {top}..{top * workers}, what {workers} workers of at most {top} can have",
        average,
    )
    rng = np.random.default_rng(seed)
    share = average / best
    for _ in range(MAX_DRAWS):
        others = np.rint(top * rng.beta(4 * share, 4 * (1 - share), workers - 1)).astype(int)
        while missing := total - top - int(others.sum()):
            changed = others + np.sign(missing) * (np.arange(workers - 1) == rng.integers(workers - 1))
            others = np.clip(changed, 0, top)
        correct = rng.permutation(np.append(others, top))
        next_best, worst_of_best = np.sort(correct)[workers - k - 1 : workers - k + 1]
        if worst_of_best > next_best:
            return _instance(correct / tasks, k, dtype)
    raise ValueError(f"k must part the workers in one of {MAX_DRAWS} draws, got {k}")


def load_correct(folder: Path | str) -> np.ndarray:
    """Reads the published answers of a crowdsourced quiz, for `replay`.

    Args:
        folder: holds `answer.csv`, whose header is `question_id` and a name for each worker, and whose further lines
            are a question's number and one letter for each worker, and `truth.csv`, with header `question_id,truth`.
            The published folders are those named in `FOLDERS`, below `Datasets` of the repository
            garfieldpigljy/CrowdLabelwithTextContent on GitHub.

    Returns:
        bool (Q, n), whether worker e answered question q correctly; both in the order of `answer.csv`. Its means over
        the first axis are the accuracies. Names of workers are not kept.

    Raises:
        ValueError: a file is missing or not of this form: a question twice or without a truth, or a line of another
            length than the header.
    """
    folder = Path(folder)
    missing = [name for name in ("answer.csv", "truth.csv") if not (folder / name).is_file()]
    require(
        not missing,
        "folder",
        "hold answer.csv and truth.csv, as the folders Datasets/NAME of "
        "https://github.com/garfieldpigljy/CrowdLabelwithTextContent do",
        str(folder),
    )
    (header, *lines), (truth_header, *truth_lines) = (_read(folder / name) for name in ("answer.csv", "truth.csv"))
    require(len(header) >= 2 and header[0] == "question_id", "answer.csv", "begin with question_id", header[:1])
    require(truth_header == ["question_id", "truth"], "truth.csv", "have the header question_id,truth", truth_header)
    for name, width, rows in (("answer.csv", len(header), lines), ("truth.csv", 2, truth_lines)):
        questions = [row[0] for row in rows]
        require(len(rows) >= 1, name, "hold at least one question", len(rows))
        require(len(set(questions)) == len(questions), name, "hold every question once", questions)
        require(all(len(row) == width for row in rows), name, f"have {width} entries a line", sorted(map(len, rows)))
    truth = dict(truth_lines)
    unknown = [row[0] for row in lines if row[0] not in truth]
    require(not unknown, "truth.csv", "hold every question of answer.csv", f"none for {unknown}")
    return np.array([[letter == truth[question] for letter in letters] for question, *letters in lines])


def _read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    require(len(rows) >= 1, path.name, "have a header", "an empty file")
    return rows


def _check_k(k: int, n: int) -> None:
    require(2 <= k <= n - 1, "k", f"lie in 2..{n - 1}", k)


def _instance(theta: np.ndarray, k: int, dtype: Any) -> Instance:
    return Instance(jnp.asarray(theta, float if dtype is None else dtype), k)
