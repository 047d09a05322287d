"""Settings of an experiment, and the stamp by which two runs are known to be the same."""

import hashlib
import inspect
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import jaxbandits
from jaxbandits import checks

HERE = Path(__file__).parent


class Settings(NamedTuple):
    """Options of the command line, as an experiment reads them."""

    quick: bool = False  # a smaller run that shows the same thing
    seeds: int | None = None  # runs of each setting; if None, the experiment's own number
    lanes: int | None = None  # lanes of a batch; if None, chosen from the device
    data: Path | None = None  # folder with the paper's data, if they may not be redistributed
    extra: Mapping[str, Any] = {}  # options of this experiment alone
    chosen: Mapping[str, Any] = {}  # parameters set by --set, which `run` receives by name
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
    mine = {"name", "run", "store", "workers", "verbose", "out", "set", *shared}
    extra = {name: value for name, value in vars(options).items() if name not in mine}
    return Settings(**shared, extra=extra, chosen=dict(getattr(options, "set", ())))


def parameters(run: Callable) -> dict[str, Any]:
    """Returns the parameters of an experiment and their defaults: what `run` takes after the settings."""
    return {name: each.default for name, each in list(inspect.signature(run).parameters.items())[1:]}


def add_parameters(parser: ArgumentParser, run: Callable) -> None:
    """Adds the option --set, for the parameters of an experiment."""
    known = parameters(run)

    def assignment(text: str) -> tuple[str, Any]:
        name, _, value = text.partition("=")
        if not known:
            raise ArgumentTypeError(f"the experiment has no parameters that can be set, got {name!r}")
        if name not in known:
            raise ArgumentTypeError(f"NAME must be one of {', '.join(known)}, got {name!r}")
        return name, parse(name, value, known[name])

    listed = ", ".join(f"{name}={assigned(default)}" for name, default in known.items())
    what = f"set a parameter; here {listed}" if known else "set a parameter; this experiment has none"
    parser.add_argument("--set", type=assignment, action="append", default=[], metavar="NAME=VALUE", help=what)


def parse(name: str, text: str, default: Any) -> Any:
    """Converts the text of a parameter to the type of its default; several values are separated by commas."""
    if isinstance(default, tuple):
        return tuple(parse(name, part, default[0]) for part in text.split(","))
    try:
        value = type(default)(text)
        # A parameter that is no probability may be zero only if it is zero by default.
        is_probability, may_be_zero = name.startswith("delta"), not default
        check = checks.probability if is_probability else checks.not_negative if may_be_zero else checks.positive
        return check(name, value)
    except ValueError as error:
        reason = (
            str(error) if str(error).startswith(name) else f"{name} must be a number like {default:g}, got {text!r}"
        )
        raise ArgumentTypeError(reason) from None


def assigned(value: Any) -> str:
    """Formats a parameter as it is set on the command line."""
    return ",".join(map(assigned, value)) if isinstance(value, tuple) else f"{value:g}"


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
    chosen |= settings.chosen
    return (
        f"{name}, jaxbandits {jaxbandits.__version__}, jax {jax.__version__}, sources {digest.hexdigest()[:16]}, "
        + ", ".join(f"{option}={value}" for option, value in chosen.items())
    )
