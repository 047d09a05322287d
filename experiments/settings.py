"""Settings of an experiment, and the stamp by which two runs are known to be the same."""

import hashlib
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import jaxbandits

HERE = Path(__file__).parent


class Settings(NamedTuple):
    """Options of the command line, as an experiment reads them."""

    quick: bool = False  # a smaller run that shows the same thing
    seeds: int | None = None  # runs of each setting; if None, the experiment's own number
    lanes: int | None = None  # lanes of a batch; if None, chosen from the device
    data: Path | None = None  # folder with the paper's data, if they may not be redistributed
    extra: Mapping[str, Any] = {}  # options of this experiment alone
    store: Path | None = None  # folder of finished runs, shared by the experiments of a family; if None, memory
    workers: int = 1
    executor: Executor | None = None  # executor of the shards of a sweep; if None, this process
    count: Callable[[int], Any] = lambda pulls: None  # called with the pulls of every sweep


def whole(text: str) -> int:
    """Parses a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def add_common(parser: ArgumentParser) -> None:
    """Adds the options that all experiments and the report share."""
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
    """Converts parsed options to settings, still without a store and workers."""
    shared = {name: getattr(options, name, None) for name in ("quick", "seeds", "lanes", "data")}
    mine = {"name", "run", "store", "workers", "verbose", "out", *shared}
    return Settings(**shared, extra={name: value for name, value in vars(options).items() if name not in mine})


def stamp(name: str, settings: Settings) -> str:
    """Returns all that determines results: versions, a hash of the sources, and the options that change numbers.

    Two runs with the same stamp give the same results, so a report reuses the files of a single experiment.
    """
    import jax

    digest = hashlib.sha256()
    for folder in (Path(jaxbandits.__file__).parent, HERE):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.toml")]):
            digest.update(path.read_bytes())
    chosen = {"quick": settings.quick, "seeds": settings.seeds, "data": settings.data, **settings.extra}
    return (
        f"{name}, jaxbandits {jaxbandits.__version__}, jax {jax.__version__}, sources {digest.hexdigest()[:16]}, "
        + ", ".join(f"{option}={value}" for option, value in chosen.items())
    )
