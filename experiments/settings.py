"""What an experiment is run with, and how two runs are known to be the same."""

import hashlib
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import jaxbandits

HERE = Path(__file__).parent


class Settings(NamedTuple):
    """The options of the command line, as an experiment sees them."""

    quick: bool = False  # a smaller run that shows the same thing
    seeds: int | None = None  # runs of each setting; None: the experiment's own number
    lanes: int | None = None  # of a batch; None: chosen from the device
    data: Path | None = None  # folder with the paper's data, where it may not be redistributed
    own: Mapping[str, Any] = {}  # options that this experiment alone has
    store: Path | None = None  # folder of finished runs, which the experiments of a family share; None: memory
    workers: int = 1
    executor: Executor | None = None  # that runs the shards of a sweep; None: this process
    count: Callable[[int], Any] = lambda pulls: None  # is told the pulls of every sweep


def whole(text: str) -> int:
    """A command line's whole number, at least 1."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def add_common(parser: ArgumentParser) -> None:
    """The options that all experiments and the report have."""
    parser.add_argument("--quick", action="store_true", help="a smaller run that shows the same thing")
    parser.add_argument("--seeds", type=whole, help="runs of each setting (default: the experiment's own)")
    parser.add_argument("--lanes", type=whole, help="lanes of one batch (default: chosen from the device)")
    parser.add_argument("--store", type=Path, help="folder for finished runs; after a kill, the same call goes on")
    parser.add_argument(
        "--workers", type=whole, default=1, help="processes to share out the cores of this machine (%(default)s)"
    )
    parser.add_argument("--verbose", action="store_true", help="say what is compiled, resumed and written")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for what is written (%(default)s)")


def settings_of(options: Namespace) -> Settings:
    """The settings that parsed options ask for, without a store and without workers yet."""
    shared = {name: getattr(options, name, None) for name in ("quick", "seeds", "lanes", "data")}
    mine = {"name", "run", "store", "workers", "verbose", "out", *shared}
    return Settings(**shared, own={name: value for name, value in vars(options).items() if name not in mine})


def stamp(name: str, settings: Settings) -> str:
    """What makes results: versions, a hash of the sources, and the options that change numbers.

    Two runs with one stamp show the same, so that a report takes up what a single experiment has written.
    """
    import jax

    digest = hashlib.sha256()
    for folder in (Path(jaxbandits.__file__).parent, HERE):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.toml")]):
            digest.update(path.read_bytes())
    chosen = {"quick": settings.quick, "seeds": settings.seeds, "data": settings.data, **settings.own}
    return (
        f"{name}, jaxbandits {jaxbandits.__version__}, jax {jax.__version__}, sources {digest.hexdigest()[:16]}, "
        + ", ".join(f"{option}={value}" for option, value in chosen.items())
    )
