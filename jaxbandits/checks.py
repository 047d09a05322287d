"""The vocabulary of argument checks: one line an argument, the same words in all families.

A check raises `ValueError("NAME must EXPECTED, got GOT")` before anything is traced or compiled. A value that is traced
cannot be looked at, so the same line then is a `jax.experimental.checkify.debug_check`: it does nothing, unless the
program runs under `checkify`, as `sweep` does once for the whole task table before the first round.

The file is longer than others because it is a dictionary: its entries are read one by one, where they are used.
"""

import contextlib
import contextvars
import operator
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from jaxbandits.base import Array

GENERATOR = "threefry2x32"  # of random numbers: the one whose draws depend on the key of their own lane alone
SHOWN = 8  # numbers of an array that a message spells out
_TRACED = contextvars.ContextVar("traced", default=True)  # whether checks of traced values leave a debug_check


@contextlib.contextmanager
def without_traced() -> Iterator[None]:
    """Traces a program without its `debug_check`s, where it has been checked already.

    Each of them is numbered within the process, so the same program would have another text, and another name in a
    store, in every process that traces it.
    """
    token = _TRACED.set(False)
    try:
        yield
    finally:
        _TRACED.reset(token)


def is_concrete(*values: Any) -> bool:
    """True if every value can be looked at now; a tracer's value is known only on the device."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def known(value: Any) -> Any:
    """A value that can be looked at now as a NumPy array, a traced one as it is.

    Under a trace even `jax.numpy` operations on constants are traced; what is to be checked there is taken out first.
    """
    return np.asarray(value) if is_concrete(value) else value


def constant(value: Any, dtype: Any) -> Array:
    """An array of a value that is known, and stays known under a trace, where `jnp.asarray` would hide it.

    So an instance that is made inside of a program keeps what does not depend on traced values for whoever needs to
    look at it: checks, supports, the tables of ratios. A traced value is converted.
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if not is_concrete(value):
        return jnp.asarray(value, dtype)
    with jax.ensure_compile_time_eval():
        return jax.device_put(np.asarray(value).astype(dtype))  # compiles nothing, as `jnp.asarray` does


def require(holds: Any, name: str, expected: str, got: Any) -> None:
    """Raises `ValueError("NAME must EXPECTED, got GOT")` unless `holds`, of any shape, is true throughout.

    A traced `holds` becomes a `debug_check`, so a factory may be called inside `jit` and `vmap`.
    """
    if is_concrete(holds):
        if not bool(np.all(holds)):
            raise ValueError(f"{name} must {expected}, got {show(got)}")
        return
    if not _TRACED.get():
        return
    message = f"{name} must {expected}".replace("{", "{{").replace("}", "}}")
    leaves = jax.tree.leaves(got)
    if len(leaves) == 1 and np.size(leaves[0]) <= SHOWN and np.result_type(jnp.result_type(leaves[0])).kind in "biuf":
        checkify.debug_check(jnp.all(holds), message + ", got {got}", got=jnp.asarray(leaves[0]))
    else:
        checkify.debug_check(jnp.all(holds), message)


def warn(text: str, *, stacklevel: int) -> None:
    """Warns as `warnings.warn` does, and drops the warning if stderr has been closed.

    Python itself drops what cannot be written for any other reason: no stderr, a full disk, a pipe without a reader.
    A filter that makes errors of warnings is obeyed.
    """
    try:
        warnings.warn(text, stacklevel=stacklevel + 1)
    except ValueError:  # of writing to a closed file; a UserWarning is none
        if not getattr(sys.stderr, "closed", False):
            raise


def real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    finite: bool = True,
) -> Any:
    """A real number: a Python or NumPy number, or an array of shape (), which may be traced.

    Args:
        name: of the argument.
        value: what came.
        above: it must be larger than this.
        least: it must be at least this.
        below: it must be smaller than this.
        most: it must be at most this.
        finite: whether infinity is refused. NaN always is.

    Returns:
        The value as it came.

    Raises:
        ValueError: it is no number, or lies outside.
    """
    expected = _range(above, least, below, most, "a number")
    number = _scalar(name, value, expected, "iuf")
    _require_entries(number, name, expected, finite, above, least, below, most)
    return value


def probability(name: str, value: Any) -> Any:
    """A number in the open interval (0, 1), as `real`."""
    return real(name, value, above=0, below=1)


def positive(name: str, value: Any, *, finite: bool = True) -> Any:
    """A number larger than 0, as `real`."""
    return real(name, value, above=0, finite=finite)


def not_negative(name: str, value: Any, *, finite: bool = True) -> Any:
    """A number of at least 0, as `real`."""
    return real(name, value, least=0, finite=finite)


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> int:
    """A whole number that shapes the program: a Python or NumPy integer, never traced, and no bool.

    Args:
        name: of the argument.
        value: what came.
        least: it must be at least this.
        most: it must be at most this.

    Returns:
        The value as a Python int.

    Raises:
        ValueError: it is no integer, or lies outside.
    """
    expected = _range(None, least, None, most, "an integer")
    if isinstance(value, jax.core.Tracer):  # an array is refused too, but this is where a user of a table comes to
        advice = "it shapes the program, so make a sweep for each value, and jaxbandits.concatenate them"
        raise ValueError(f"{name} must {expected}, got {show(value)}: {advice}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    require((least is None or value >= least) and (most is None or value <= most), name, expected, value)
    return int(value)


def integer(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> Any:
    """A whole number that may be traced: an integer, or an array of integers of shape ().

    Arguments, result and errors are those of `whole`, except that the value is returned as it came.
    """
    expected = _range(None, least, None, most, "an integer")
    number = _scalar(name, value, expected, "iu")
    _require_entries(number, name, expected, False, None, least, None, most)
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, as Python or NumPy has it."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {show(value)}")
    return bool(value)


def one_of(name: str, value: Any, choices: Any) -> Any:
    """One of a few words, given as a `Literal` type or as a sequence of them."""
    words = get_args(choices) or tuple(choices)
    if not isinstance(value, type(words[0])) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {show(value)}")
    return value


def path(name: str, value: Any) -> Path:
    """The path of a file or folder: a string or a `pathlib.Path`, in which `~` stands for a home folder.

    Args:
        name: of the argument.
        value: what came. A path that is empty, holds a NUL, or is the address of a remote store is refused.

    Returns:
        The path, with `~` expanded.

    Raises:
        ValueError: it is no path, or one that no file can have.
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a path, got {show(value)}")
    if not text:
        raise ValueError(f"{name} must be a path that is not empty, got ''")
    if "\0" in text:
        raise ValueError(f"{name} must be a path without NUL characters, got {text!r}")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):  # as a path, it would be a folder named `s3:`
        raise ValueError(f"{name} must be a path of a mounted file system, got {text!r}")
    try:
        os.fsencode(text)
        return Path(text).expanduser()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be a path that the file system can encode, got {text!r}") from error
    except RuntimeError as error:
        raise ValueError(f"{name} must be a path below the home folder of a known user, got {text!r}") from error


def function(name: str, value: Any, of: str = "") -> Any:
    """Something that can be called; `of` says with what, for the message."""
    if not callable(value):
        raise ValueError(f"{name} must be a function{of and f' of {of}'}, got {show(value)}")
    return value


def instance(name: str, value: Any, kinds: type | tuple[type, ...]) -> Any:
    """An object of one of these classes."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise ValueError(f"{name} must be of type {names}, got {show(value)}")
    return value


def key(name: str, value: Any) -> Any:
    """A JAX key, which may be traced: a typed one of shape (), or a raw one, two unsigned 32-bit integers.

    It must be of `threefry2x32`. Other generators, such as `rbg`, draw from the first lane's key under `jax.vmap`, so
    that a run would depend on its neighbours.
    """
    dtype = value.dtype if isinstance(value, jax.Array) else None
    is_typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    is_raw = dtype == jnp.uint32 and np.ndim(value) == 1
    # JAX takes a raw key for one of its default generator.
    generator = str(jax.random.key_impl(value)) if is_typed else getattr(jax.config, "jax_default_prng_impl")  # noqa: B009
    if not (is_typed and np.ndim(value) == 0) and not (is_raw and (generator != GENERATOR or value.shape == (2,))):
        raise ValueError(f"{name} must be a JAX key, such as jax.random.key(0), got {show(value)}")
    if generator != GENERATOR:
        kind = f"a key of {generator}" if is_typed else f"a raw key under jax_default_prng_impl={generator}"
        raise ValueError(
            f"{name} must be a key of {GENERATOR}, got {kind}. Under jax.vmap that generator draws from one key for "
            f'all lanes. Use jax.random.key(seed, impl="{GENERATOR}")'
        )
    return value


def array(
    name: str,
    value: Any,
    shape: Sequence[int | str | None],
    *,
    kind: str = "float",
    dtype: Any = None,
    finite: bool = True,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    nan: bool = False,
) -> Array:
    """An array of a given shape, from an array or from nested lists.

    Args:
        name: of the argument.
        value: what came.
        shape: an int is the size of an axis; a letter names an axis of any size of at least 1, the same size wherever
            it stands again; "..." as the first entry stands for any leading axes.
        kind: "float": real numbers, of which integers become JAX's default float type; "int"; "bool".
        dtype: of the result, where it is not to be that of the value.
        finite: whether infinite entries are refused. NaN always is.
        above: every entry must be larger than this.
        least: every entry must be at least this.
        below: every entry must be smaller than this.
        most: every entry must be at most this.
        nan: whether any entry will do, also NaN.

    Returns:
        The value as a JAX array, so that a float array keeps its dtype.

    Raises:
        ValueError: it is ragged, of another shape or kind, or an entry lies outside.
    """
    words = {"float": "real numbers", "int": "integers", "bool": "booleans"}[kind]
    drawn = ", ".join(str(axis) for axis in shape) + ("," if len(shape) == 1 else "")
    expected = f"be an array of {words} of shape ({drawn})"
    if not isinstance(value, (jax.Array, np.ndarray)):
        value = _from_lists(name, value, expected)
    allowed = {"float": "iuf", "int": "iu", "bool": "b"}[kind]
    if _kind(value) not in allowed or not _fits(np.shape(value), shape):
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    if kind != "bool" and not nan:
        expected = _range(above, least, below, most, "numbers")
        _require_entries(known(value), name, expected, finite and kind == "float", above, least, below, most)
    if dtype is None and kind == "float" and _kind(value) != "f":
        dtype = jnp.result_type(float)
    if is_concrete(value) and not isinstance(value, jax.Array):
        # With its dtype named the conversion is no program to compile.
        dtype = jax.dtypes.canonicalize_dtype(value.dtype if dtype is None else dtype)
        value = np.asarray(value, dtype)
    return jnp.asarray(value, dtype)


def numbers(name: str, value: Any, shape: tuple[int, ...], dtype: Any, **bounds: Any) -> Array:
    """Measured numbers as an array of a shape and dtype: Python numbers, lists, booleans (as 0 and 1) and arrays.

    They are finite. Other arguments: see `array`.
    """
    expected = f"be an array of real numbers of shape {shape}" if shape else "be a real number"
    is_struct = value is None or isinstance(value, (str, bytes, dict, set)) or hasattr(value, "_fields")
    try:
        found = None if is_struct else np.asarray(value) if is_concrete(value) else jnp.asarray(value)
    except (TypeError, ValueError):  # ragged, a key, or made of something else
        found = None
    if found is None or _kind(found) not in "biuf" or np.shape(found) != shape:
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    return array(
        name, found.astype(jnp.result_type(float)) if _kind(found) == "b" else found, shape, dtype=dtype, **bounds
    )


def float_dtype(name: str, value: Any) -> Any:
    """A floating dtype, or None for JAX's own default."""
    try:
        dtype = jnp.dtype(jnp.result_type(float) if value is None else value)
    except TypeError:
        dtype = None
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"{name} must be a floating dtype, got {show(value)}")
    return jax.dtypes.canonicalize_dtype(dtype)


def domain(action: Any, accepts: Callable[[Any], Any], expected: str) -> None:
    """Raises `ValueError` unless an environment accepts an action, where that is known.

    In a program nothing is checked, so that no round pays for it; `jaxbandits.testing.check` looks at every round.
    """
    if is_concrete(action):
        require(accepts(action), "action", expected, action)


def one_size(**sizes: tuple[int, Any]) -> None:
    """Raises `ValueError` unless all arguments agree on a size: `one_size(arms=(K, arms), theta=(d, theta))`."""
    if len({size for size, _ in sizes.values()}) > 1:
        shown = ", ".join(f"{name} has {size}" for name, (size, _) in sizes.items())
        raise ValueError(f"{' and '.join(sizes)} must be of one size, got: {shown}")


def show(value: Any) -> str:
    """A value as a message has it: short, and of an array no more than its shape and type if it is large."""
    if isinstance(value, jax.core.Tracer):
        return f"a traced value of shape {np.shape(value)} and dtype {value.dtype}"
    if not is_concrete(value):
        return f"an object of type {type(value).__name__} with traced values"
    if isinstance(value, (jax.Array, np.ndarray)):
        is_key = jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        is_short = value.size <= SHOWN and value.ndim <= 1 and not is_key
        return str(np.asarray(value)) if is_short else f"an array of shape {value.shape} and dtype {value.dtype}"
    if (fields := getattr(value, "_fields", ())) and not isinstance(value, type):
        text = f"{type(value).__name__}({', '.join(f'{name}={show(getattr(value, name))}' for name in fields)})"
    else:
        text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _scalar(name: str, value: Any, expected: str, kinds: str) -> Any:
    """The value as `known`; raises `ValueError` unless it is a number of a dtype of these kinds."""
    is_number = isinstance(value, (int, float, np.generic, np.ndarray, jax.Array))
    if not is_number or np.shape(value) != () or _kind(value) not in kinds:
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    return known(value)


def _kind(value: Any) -> str:
    """Of the dtype: "b", "i", "u", "f", or another letter for what is no number."""
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    if jnp.issubdtype(dtype, jnp.floating):  # bfloat16, too
        return "f"
    return getattr(dtype, "kind", "O")


def _from_lists(name: str, value: Any, expected: str) -> Any:
    """Nested lists as an array. Their leaves may be arrays, traced ones as well."""
    refused = ValueError(f"{name} must {expected}, got {show(value)}")
    if value is None or isinstance(value, (str, bytes, dict, set)) or hasattr(value, "_fields"):
        raise refused
    try:
        return np.asarray(value) if is_concrete(value) else jnp.asarray(value)
    except (TypeError, ValueError) as error:  # ragged, or made of something else
        raise refused from error


def _fits(shape: tuple[int, ...], wanted: Sequence[int | str | None]) -> bool:
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    if len(shape) != len(wanted):
        return False
    sizes: dict[str, int] = {}
    for size, axis in zip(shape, wanted, strict=True):
        if size != (axis if isinstance(axis, int) else sizes.setdefault(str(axis), size)):
            return False
        if not isinstance(axis, int) and size < 1:
            return False
    return True


def _require_entries(
    values: Any,
    name: str,
    expected: str,
    finite: bool,
    above: float | None,
    least: float | None,
    below: float | None,
    most: float | None,
) -> None:
    """Raises `ValueError` unless all values lie where they are to."""
    holds = values == values
    for bound, within in ((above, operator.gt), (least, operator.ge), (below, operator.lt), (most, operator.le)):
        if bound is not None:
            holds = holds & within(values, bound)
    if finite and expected == "be numbers":
        expected = "be finite"
    require(holds, name, expected, _worst(values, holds))
    if finite:
        holds = np.isfinite(values) if is_concrete(values) else jnp.isfinite(values)
        require(holds, name, "be finite", _worst(values, holds))


def _worst(values: Any, holds: Any) -> Any:
    """The first entry at fault, of an array that is too large to be shown."""
    if is_concrete(values, holds) and np.size(values) > SHOWN:
        return np.asarray(values).ravel()[np.argmin(np.asarray(holds).ravel())]
    return values


def _range(above: float | None, least: float | None, below: float | None, most: float | None, noun: str) -> str:
    """What is expected, in words."""
    lower = above if above is not None else least
    upper = below if below is not None else most
    be = f"be {noun}" if noun == "an integer" else "be"
    if lower is not None and upper is not None:
        interval = f"{'(' if above is not None else '['}{lower}, {upper}{')' if below is not None else ']'}"
        return f"{be} in {interval}" if noun == "an integer" else f"lie in {interval}"
    if lower is None and upper is None:
        return f"be {noun}"
    if above == 0:
        words = "positive"
    elif lower is not None:
        words = f"more than {lower}" if above is not None else f"at least {lower}"
    else:
        words = f"less than {upper}" if below is not None else f"at most {upper}"
    return f"{be} of {words}" if noun == "an integer" else f"{be} {words}"
