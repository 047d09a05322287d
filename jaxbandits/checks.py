"""The vocabulary of argument checks: one line per argument, the same words in all families.

A check raises `ValueError("NAME must EXPECTED, got GOT")` before anything is traced or compiled. A traced value has no
value yet. There the check becomes a `jax.experimental.checkify.debug_check`, which does nothing unless the program runs
under `checkify`. `sweep` does this once for the whole task table, before the first round.

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

# Random number generator whose draws depend on the key of their own lane alone.
GENERATOR = "threefry2x32"
SHOWN = 8  # largest number of array entries that a message spells out
_TRACED = contextvars.ContextVar("traced", default=True)  # True if checks of traced values leave a debug_check


@contextlib.contextmanager
def without_traced() -> Iterator[None]:
    """Traces a program that has been checked already, without its `debug_check`s.

    Each `debug_check` is numbered within the process. With them the same program would have another text, and another
    name in a store, in every process that traces it.
    """
    token = _TRACED.set(False)
    try:
        yield
    finally:
        _TRACED.reset(token)


def is_concrete(*values: Any) -> bool:
    """True if every value is known now; a tracer's value is known only on the device."""
    return not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def known(value: Any) -> Any:
    """Returns a concrete value as a NumPy array, and a traced one unchanged.

    Under a trace even `jax.numpy` operations on constants are traced, so checks work on NumPy arrays.
    """
    return np.asarray(value) if is_concrete(value) else value


def constant(value: Any, dtype: Any) -> Array:
    """Returns a known value as an array that stays concrete under a trace, where `jnp.asarray` would trace it.

    An instance that is made inside a program thus keeps the arrays that do not depend on traced values. Checks,
    supports and tables of ratios read them. A traced value is converted.
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if not is_concrete(value):
        return jnp.asarray(value, dtype)
    with jax.ensure_compile_time_eval():
        return jax.device_put(np.asarray(value).astype(dtype))  # compiles nothing, as `jnp.asarray` does


def require(holds: Any, name: str, expected: str, got: Any, *, advice: str = "") -> None:
    """Raises `ValueError("NAME must EXPECTED, got GOT. ADVICE")` unless all of `holds`, of any shape, is true.

    A traced `holds` becomes a `debug_check`, so a factory may be called inside `jit` and `vmap`.
    """
    if is_concrete(holds):
        if not bool(np.all(holds)):
            raise ValueError(f"{name} must {expected}, got {show(got)}{advice and f'. {advice}'}")
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

    Python itself drops a warning that cannot be written for another reason: no stderr, a full disk, a pipe without a
    reader. A filter that turns warnings into errors still applies.
    """
    try:
        warnings.warn(text, stacklevel=stacklevel + 1)
    # A closed file raises it; a UserWarning that a filter turns into an error is no ValueError.
    except ValueError:
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
    """Checks a real number: a Python or NumPy number, or an array of shape (), which may be traced.

    Args:
        name: name of the argument.
        value: the argument.
        above: it must be larger than this.
        least: it must be at least this.
        below: it must be smaller than this.
        most: it must be at most this.
        finite: True if infinity is refused. NaN is always refused.

    Returns:
        The value, unchanged.

    Raises:
        ValueError: the value is no number, or outside the bounds.
    """
    bounds = {"above": above, "least": least, "below": below, "most": most}
    expected = _range("a number", **bounds)
    number = _scalar(name, value, expected, "iuf")
    _require_entries(number, name, expected, finite=finite, **bounds)
    return value


def probability(name: str, value: Any) -> Any:
    """Checks a number in the open interval (0, 1), as `real` does."""
    return real(name, value, above=0, below=1)


def positive(name: str, value: Any, *, finite: bool = True) -> Any:
    """Checks a number larger than 0, as `real` does."""
    return real(name, value, above=0, finite=finite)


def not_negative(name: str, value: Any, *, finite: bool = True) -> Any:
    """Checks a number of at least 0, as `real` does."""
    return real(name, value, least=0, finite=finite)


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None, advice: str = "") -> int:
    """Checks a whole number that shapes the program: a Python or NumPy integer, never traced, and no bool.

    Args:
        name: name of the argument.
        value: the argument.
        least: it must be at least this.
        most: it must be at most this.
        advice: end of the message.

    Returns:
        The value as a Python int.

    Raises:
        ValueError: the value is no integer, or outside the bounds.
    """
    expected = _range("an integer", least=least, most=most)
    # An array is refused as well, but a column of a task table arrives here as a tracer.
    if isinstance(value, jax.core.Tracer):
        reason = "it shapes the program, so make a sweep for each value, and jaxbandits.concatenate them"
        raise ValueError(f"{name} must {expected}, got {show(value)}: {reason}")
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must {expected}, got {show(value)}{advice and f'. {advice}'}")
    is_within = (least is None or value >= least) and (most is None or value <= most)
    require(is_within, name, expected, value, advice=advice)
    return int(value)


def integer(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> Any:
    """Checks a whole number that may be traced: an integer, or an array of integers of shape ().

    Arguments and errors are as for `whole`; the value is returned unchanged.
    """
    expected = _range("an integer", least=least, most=most)
    number = _scalar(name, value, expected, "iu")
    _require_entries(number, name, expected, finite=False, least=least, most=most)
    return value


def flag(name: str, value: Any) -> bool:
    """Checks a Python or NumPy bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {show(value)}")
    return bool(value)


def one_of(name: str, value: Any, choices: Any) -> Any:
    """Checks one of a few words, given as a `Literal` type or as a sequence."""
    words = get_args(choices) or tuple(choices)
    if not isinstance(value, type(words[0])) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, got {show(value)}")
    return value


def path(name: str, value: Any) -> Path:
    """Checks the path of a file or folder: a string or a `pathlib.Path`, in which `~` stands for a home folder.

    Args:
        name: name of the argument.
        value: the argument. A path that is empty, holds a NUL, or is the address of a remote store is refused.

    Returns:
        The path, with `~` expanded.

    Raises:
        ValueError: the value is no path, or no file can have this path.
    """
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a path, got {show(value)}")
    if not text:
        raise ValueError(f"{name} must be a path that is not empty, got ''")
    if "\0" in text:
        raise ValueError(f"{name} must be a path without NUL characters, got {text!r}")
    # As a path, it would be a folder named `s3:`.
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise ValueError(f"{name} must be a path of a mounted file system, got {text!r}")
    try:
        os.fsencode(text)
        return Path(text).expanduser()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be a path that the file system can encode, got {text!r}") from error
    except RuntimeError as error:
        raise ValueError(f"{name} must be a path below the home folder of a known user, got {text!r}") from error


def function(name: str, value: Any, of: str = "") -> Any:
    """Checks a callable; `of` names its arguments in the message."""
    if not callable(value):
        raise ValueError(f"{name} must be a function{of and f' of {of}'}, got {show(value)}")
    return value


def instance(
    name: str,
    value: Any,
    kinds: type | tuple[type, ...],
    *,
    advice: str = "",
    lines: Sequence[tuple[tuple[type, ...], str]] = (),
) -> Any:
    """Checks an object of one of these classes.

    Args:
        name: name of the argument.
        value: the argument.
        kinds: the classes.
        advice: end of the message.
        lines: other classes, each with the end of the message for an object of it.

    Returns:
        The value, unchanged.

    Raises:
        ValueError: the value is of another class.
    """
    if isinstance(value, kinds):
        return value
    classes = kinds if isinstance(kinds, tuple) else (kinds,)
    got = show(value)
    # An instance, with the truth, stands where what a learner may know belongs.
    if isinstance(getattr(value, "problem", None), kinds):
        advice = "Write instance.problem"
    advice = next((line for others, line in lines if isinstance(value, others)), advice)
    theirs, ours = family_of(type(value)), family_of(classes[0])
    if theirs and ours and theirs != ours:
        got = f"{theirs}.{got}"
        is_namesake = type(value).__name__ in [kind.__name__ for kind in classes]
        advice = f"Write {theirs} instead of {ours}" if is_namesake else advice
    names = " or ".join(map(called, classes))
    raise ValueError(f"{name} must be of type {names}, got {got}{advice and f'. {advice}'}")


def family_of(kind: type) -> str:
    """Returns the name of the family of algorithms that has this class, such as "mab"; "" if none has it."""
    package, _, inner = kind.__module__.partition(".")
    family = inner.partition(".")[0]
    is_public = getattr(sys.modules.get(f"{package}.{family}"), kind.__name__, None) is kind
    return family if package == __package__ and is_public and "._problem" in kind.__module__ else ""


def called(kind: type) -> str:
    """Returns the name by which a caller knows a class: with its family, if it has one."""
    family = family_of(kind)
    return f"{family}.{kind.__name__}" if family else kind.__name__


def key(name: str, value: Any) -> Any:
    """Checks a JAX key, which may be traced: a typed one of shape (), or a raw one, two unsigned 32-bit integers.

    Its generator must be `threefry2x32`. Other generators, such as `rbg`, draw from the first lane's key under
    `jax.vmap`, so a run would depend on its neighbours.
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
    """Checks an array of a given shape, from an array or from nested lists.

    Args:
        name: name of the argument.
        value: the argument.
        shape: an int is the size of an axis. A letter names an axis of any size of at least 1; the same letter has the
            same size everywhere. "..." as the first entry stands for any leading axes.
        kind: "float" for real numbers (integers become JAX's default float type), "int" or "bool".
        dtype: dtype of the result. If None, a float array keeps its own.
        finite: True if infinite entries are refused. NaN is always refused.
        above: every entry must be larger than this.
        least: every entry must be at least this.
        below: every entry must be smaller than this.
        most: every entry must be at most this.
        nan: True if any entry is accepted, including NaN.

    Returns:
        The value as a JAX array.

    Raises:
        ValueError: the array is ragged, has another shape or kind, or an entry is outside the bounds.
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
        bounds = {"above": above, "least": least, "below": below, "most": most}
        expected = _range("numbers", **bounds)
        _require_entries(known(value), name, expected, finite=finite and kind == "float", **bounds)
    if dtype is None and kind == "float" and _kind(value) != "f":
        dtype = jnp.result_type(float)
    if is_concrete(value) and not isinstance(value, jax.Array):
        # If the dtype is named, the conversion compiles no program.
        dtype = jax.dtypes.canonicalize_dtype(value.dtype if dtype is None else dtype)
        value = np.asarray(value, dtype)
    return jnp.asarray(value, dtype)


def numbers(name: str, value: Any, shape: tuple[int, ...], dtype: Any, **bounds: Any) -> Array:
    """Converts measured numbers to an array: Python numbers, lists, booleans (as 0 and 1) and arrays.

    The numbers must be finite. Other arguments: see `array`.
    """
    expected = f"be an array of real numbers of shape {shape}" if shape else "be a real number"
    is_struct = value is None or isinstance(value, (str, bytes, dict, set)) or hasattr(value, "_fields")
    try:
        measured = None if is_struct else np.asarray(value) if is_concrete(value) else jnp.asarray(value)
    except (TypeError, ValueError):  # ragged, a key, or no numbers
        measured = None
    if measured is None or _kind(measured) not in "biuf" or np.shape(measured) != shape:
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    if _kind(measured) == "b":
        measured = measured.astype(jnp.result_type(float))
    return array(name, measured, shape, dtype=dtype, **bounds)


def float_dtype(name: str, value: Any) -> Any:
    """Checks a floating dtype; None stands for JAX's own default."""
    try:
        dtype = jnp.dtype(jnp.result_type(float) if value is None else value)
    except TypeError:
        dtype = None
    if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"{name} must be a floating dtype, got {show(value)}")
    return jax.dtypes.canonicalize_dtype(dtype)


def domain(action: Any, accepts: Callable[[Any], Any], expected: str) -> None:
    """Raises `ValueError` unless an environment accepts an action whose value is known.

    In a program nothing is checked, so that no round pays for it; `jaxbandits.testing.check` checks every round.
    """
    if is_concrete(action):
        require(accepts(action), "action", expected, action)


def one_size(**sizes: tuple[int, Any]) -> None:
    """Raises `ValueError` unless all arguments agree on a size: `one_size(arms=(K, arms), theta=(d, theta))`."""
    if len({size for size, _ in sizes.values()}) > 1:
        shown = ", ".join(f"{name} has {size}" for name, (size, _) in sizes.items())
        raise ValueError(f"{' and '.join(sizes)} must be of one size, got: {shown}")


def show(value: Any) -> str:
    """Returns a short text of a value for a message; a large array is shown by its shape and dtype."""
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
    """Returns the value as `known` does; raises `ValueError` unless it is a number of a dtype of these kinds."""
    is_number = isinstance(value, (int, float, np.generic, np.ndarray, jax.Array))
    if not is_number or np.shape(value) != () or _kind(value) not in kinds:
        raise ValueError(f"{name} must {expected}, got {show(value)}")
    return known(value)


def _kind(value: Any) -> str:
    """Returns the kind of a dtype: "b", "i", "u", "f", or another letter if it is no number."""
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    if jnp.issubdtype(dtype, jnp.floating):  # bfloat16 too, whose NumPy kind is "V"
        return "f"
    return getattr(dtype, "kind", "O")


def _from_lists(name: str, value: Any, expected: str) -> Any:
    """Converts nested lists to an array. Their leaves may be arrays, also traced ones."""
    # An instance stands where one of its arrays belongs.
    advice = f". Write instance.{name}" if name in getattr(value, "_fields", ()) else ""
    refused = ValueError(f"{name} must {expected}, got {show(value)}{advice}")
    if value is None or isinstance(value, (str, bytes, dict, set)) or hasattr(value, "_fields"):
        raise refused
    try:
        return np.asarray(value) if is_concrete(value) else jnp.asarray(value)
    except (TypeError, ValueError) as error:  # ragged, or no numbers
        raise refused from error


def _fits(shape: tuple[int, ...], axes: Sequence[int | str | None]) -> bool:
    if axes and axes[0] == "...":
        axes = axes[1:]
        shape = shape[max(0, len(shape) - len(axes)) :]
    if len(shape) != len(axes):
        return False
    sizes: dict[str, int] = {}
    for size, axis in zip(shape, axes, strict=True):
        if size != (axis if isinstance(axis, int) else sizes.setdefault(str(axis), size)):
            return False
        if not isinstance(axis, int) and size < 1:
            return False
    return True


def _require_entries(
    values: Any,
    name: str,
    expected: str,
    *,
    finite: bool,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """Raises `ValueError` unless all values lie within the bounds."""
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
    """Returns the values, or their first invalid entry if the array is too large to be shown."""
    if is_concrete(values, holds) and np.size(values) > SHOWN:
        return np.asarray(values).ravel()[np.argmin(np.asarray(holds).ravel())]
    return values


def _range(
    noun: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> str:
    """Returns the words for what is expected."""
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
