"""Distributed kernel bandits: agents that share what they learn of one function, at the price of communication.

N agents query a function f on M candidates for T rounds, one candidate each a round, and model f by a Gaussian process
with a given kernel. What counts is the regret of all agents together, and the numbers that they send and receive.

    >>> import jax
    >>> import jaxbandits
    >>> from jaxbandits import kernel
    >>> key = jax.random.key(0)
    >>> settings = {"kernel": kernel.paper_kernel("branin"), "n_agents": 10, "horizon": 50, "beta": 0.5}
    >>> instance = kernel.branin(key, noise_scale=0.2)  # the truth: an Instance
    >>> algorithm = kernel.duets(instance.candidates, noise_variance=0.04, **settings)  # from what a learner may know
    >>> environment = kernel.environment(instance, algorithm)  # answers it
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(kernel.regret(instance, outcome.answer).round(3))
    0.0

| algorithm | what it does |
| --- | --- |
| `duets` | shared coins: uniform sampling of active candidates, and elimination by a sparse posterior |
| `dis_kernel_ucb` | GP-UCB of all agents, who share all data when one of them has learned enough |
| `approx_dis_kernel_ucb` | the same through a dictionary of inducing points |
| `n_kernel_ucb` | GP-UCB of every agent alone |
| `gp_ucb` | GP-UCB of one learner |
| `bpe` | one learner: batches of the most uncertain points, and elimination |

`Settings` says what all of these take. A kernel is a value, `SquaredExponential(lengthscale=0.2)` or
`Matern(lengthscale=0.2, nu=2.5)`, whose parameters may be columns of a task table. A function of two points is also a
kernel. `round_regret` and `messages` are what `jaxbandits.record` takes, for curves of
regret and of what was sent. `agent_message` and `server_message` compute the two messages of `duets` from arrays. Apart
from them stands `duets_run`, an engine of its own: whole runs of `duets` as a few array operations.

Reading a run: `state.t` are the rounds observed, of one query an agent, and `state.pulls` the queries of all agents.
`belief` gives the posterior that a state holds; in one of `duets`, `state.active[:state.size]` are the candidates left.

Source: Pavlovic, Salgia and Zhao (2024), Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with
Shared Randomness.
"""

from jaxbandits.kernel._algorithms.approx_dis_kernel_ucb import approx_dis_kernel_ucb
from jaxbandits.kernel._algorithms.bpe import batch_lengths, bpe
from jaxbandits.kernel._algorithms.dis_kernel_ucb import dis_kernel_ucb
from jaxbandits.kernel._algorithms.duets import duets
from jaxbandits.kernel._algorithms.duets_run import Run, duets_run
from jaxbandits.kernel._algorithms.gp_ucb import gp_ucb
from jaxbandits.kernel._algorithms.n_kernel_ucb import n_kernel_ucb
from jaxbandits.kernel._problem.environment import environment
from jaxbandits.kernel._problem.instances import (
    Instance,
    branin,
    h1,
    h2,
    hartmann4,
    paper_kernel,
    regret,
    rkhs,
    tabular,
)
from jaxbandits.kernel._problem.settings import Coins, Settings
from jaxbandits.kernel._shared.duets_messages import agent_message, server_message
from jaxbandits.kernel._shared.duets_settings import epoch_lengths, log_rate
from jaxbandits.kernel._shared.traffic import Traffic, every_tenth, messages, round_regret
from jaxbandits.kernel._theory.complexity import (
    Orders,
    anytime_width,
    confidence_width,
    duets_delta,
    duets_p0,
    duets_regret_bound,
    epoch_bound,
    inducing_set_bound,
    orders,
)
from jaxbandits.kernel._theory.diagnostics import Belief, belief
from jaxbandits.kernel._theory.information import (
    effective_dimension,
    greedy_information_gain,
    information_gain,
    information_gain_order,
)
from jaxbandits.numerics.gp import Matern, SquaredExponential

__all__ = [
    "Belief",
    "Coins",
    "Instance",
    "Matern",
    "Orders",
    "Run",
    "Settings",
    "SquaredExponential",
    "Traffic",
    "agent_message",
    "anytime_width",
    "approx_dis_kernel_ucb",
    "batch_lengths",
    "belief",
    "bpe",
    "branin",
    "confidence_width",
    "dis_kernel_ucb",
    "duets",
    "duets_delta",
    "duets_p0",
    "duets_regret_bound",
    "duets_run",
    "effective_dimension",
    "environment",
    "epoch_bound",
    "epoch_lengths",
    "every_tenth",
    "gp_ucb",
    "greedy_information_gain",
    "h1",
    "h2",
    "hartmann4",
    "inducing_set_bound",
    "information_gain",
    "information_gain_order",
    "log_rate",
    "messages",
    "n_kernel_ucb",
    "orders",
    "paper_kernel",
    "regret",
    "rkhs",
    "round_regret",
    "server_message",
    "tabular",
]
