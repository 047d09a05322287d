"""Rules of scalar replacement: operations on arrays of entries, each of which is a vector over lanes.

An entry that is known while tracing is a NumPy scalar, so an index that is a constant of the program costs nothing.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp clz
    convert_element_type copy cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow
    is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or population_count pow
    reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin
    sinh sqrt square stop_gradient sub tan tanh xor
    """.split()  # noqa: SIM905
)
FOLDS = {
    "reduce_sum": lax.add, "reduce_max": lax.max, "reduce_min": lax.min, "reduce_prod": lax.mul,
    "reduce_and": lax.bitwise_and, "reduce_or": lax.bitwise_or, "cumsum": lax.add, "cumprod": lax.mul,
    "cummax": lax.max, "cummin": lax.min,
}  # fmt: skip
SCATTERS = {
    "scatter": lambda old, new: new, "scatter-add": lax.add, "scatter-mul": lax.mul, "scatter-max": lax.max,
    "scatter-min": lax.min,
}  # fmt: skip

Entries = np.ndarray  # array of objects: vectors (lanes,), and scalars () that all lanes share


def entries(values: Sequence[Any], shape: tuple[int, ...]) -> Entries:
    """Builds an array of objects from entries."""
    out = np.empty(len(values), object)
    for n, value in enumerate(values):
        out[n] = value
    return out.reshape(shape)


def _fixed(index: Any) -> int | None:
    """Returns an index that is known while tracing, or None."""
    return int(index) if isinstance(index, (np.generic, np.ndarray, int)) else None


def pick(xs: Sequence[Any], index: Any) -> Any:
    """Selects the entry at an index, which is clipped to the range."""
    if (known := _fixed(index)) is not None:
        return xs[min(max(known, 0), len(xs) - 1)]
    out = xs[0]
    for n in range(1, len(xs)):
        if not _same(xs[n - 1], xs[n]):
            out = choose(index >= n, xs[n], out)
    return out


def choose(which: Any, new: Any, old: Any) -> Any:
    """Selects one of two entries, by a single operation, unlike `jnp.where`."""
    new, old = _broadcast_pair(new, old)
    shape = np.broadcast_shapes(jnp.shape(which), new.shape)
    return lax.select(*(jnp.broadcast_to(x, shape) for x in (which, new, old)))


def _same(a: Any, b: Any) -> bool:
    """Checks whether two entries are known to have the same value."""
    return a is b or (isinstance(a, np.generic) and isinstance(b, np.generic) and a.tobytes() == b.tobytes())


def _window(x: Entries, starts: Sequence[Any], sizes: Sequence[int]) -> Entries:
    """Slices at a computed start, which is clipped so that the slice fits."""
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        rows, count = np.moveaxis(x, axis, 0), x.shape[axis] - size + 1
        out = np.empty((size, *rows.shape[1:]), object)
        for i in np.ndindex(out.shape):
            out[i] = pick([rows[(n + i[0], *i[1:])] for n in range(count)], start) if count > 1 else rows[i]
        x = np.moveaxis(out, 0, axis)
    return x


def _placed(x: Entries, starts: Sequence[Any], new: Entries, combine: Callable) -> Entries:
    """Writes a block into a copy of `x`. A block that starts outside is dropped."""
    out = x.copy()
    for at in itertools.product(*[range(n - size + 1) for n, size in zip(x.shape, new.shape, strict=True)]):
        tests = [(start, n) for start, n in zip(starts, at, strict=True)]
        if any(_fixed(start) not in (None, n) for start, n in tests):
            continue
        here = None
        for start, n in tests:
            if _fixed(start) is None:
                here = (start == n) if here is None else here & (start == n)
        for i in np.ndindex(new.shape):
            j = tuple(a + b for a, b in zip(at, i, strict=True))
            both = combine(*_broadcast_pair(out[j], new[i]))
            out[j] = both if here is None else choose(here, both, out[j])
    return out


def _broadcast_pair(a: Any, b: Any) -> tuple[Any, Any]:
    """Broadcasts two entries to a common shape."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    return jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)


def _reduce(equation: Any, parts: Sequence[Entries]) -> Entries:
    axes, combine = equation.params["axes"], FOLDS[equation.primitive.name]
    x = np.moveaxis(parts[0], axes, range(len(axes)))
    x = x.reshape(-1, *x.shape[len(axes) :])
    if not len(x):
        return None  # type: ignore[return-value]
    out = x[0].copy() if isinstance(x[0], np.ndarray) else entries([x[0]], ())
    for row in x[1:]:
        for i in np.ndindex(out.shape):
            out[i] = combine(*_broadcast_pair(out[i], row[i] if out.ndim else row))
    return out


def _cumulate(equation: Any, parts: Sequence[Entries]) -> Entries:
    axis, combine = equation.params["axis"], FOLDS[equation.primitive.name]
    x = np.moveaxis(parts[0], axis, 0).copy()
    order = range(len(x))[::-1] if equation.params["reverse"] else range(len(x))
    for before, n in itertools.pairwise(order):
        for i in np.ndindex(x.shape[1:]):
            x[(n, *i)] = combine(*_broadcast_pair(x[(before, *i)], x[(n, *i)]))
    return np.moveaxis(x, 0, axis)


def _argbest(equation: Any, parts: Sequence[Entries]) -> Entries:
    """Finds the first of the largest (argmax) or smallest (argmin) entries, or the first NaN."""
    (axis,), dtype = equation.params["axes"], equation.params["index_dtype"]
    stays = lax.ge if equation.primitive.name == "argmax" else lax.le
    x = np.moveaxis(parts[0], axis, 0)
    out = np.empty(x.shape[1:], object)
    for i in np.ndindex(out.shape):
        best, at = x[(0, *i)], jnp.zeros((), dtype)
        for n in range(1, len(x)):
            old, new = _broadcast_pair(best, x[(n, *i)])
            wins = ~stays(old, new)  # also True if one of the two is NaN
            if jnp.issubdtype(new.dtype, jnp.floating):
                wins &= old == old
            best, at = choose(wins, new, old), choose(wins, jnp.asarray(n, dtype), at)
        out[i] = at
    return out


def _dot(equation: Any, parts: Sequence[Entries]) -> Entries:
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = equation.params["dimension_numbers"]
    lhs, rhs = parts
    dtype = equation.outvars[0].aval.dtype

    def arranged(x: Entries, same: Sequence[int], summed: Sequence[int]) -> tuple[Entries, tuple[int, ...]]:
        free = [axis for axis in range(x.ndim) if axis not in (*same, *summed)]
        sizes = tuple(x.shape[axis] for axis in free)
        depth = math.prod(x.shape[axis] for axis in summed)
        count = math.prod(x.shape[axis] for axis in same)
        return x.transpose(*same, *free, *summed).reshape(count, math.prod(sizes), depth), sizes

    a, a_free = arranged(lhs, lhs_batch, lhs_sum)
    b, b_free = arranged(rhs, rhs_batch, rhs_sum)
    products = []
    for n, p, q in np.ndindex(len(a), a.shape[1], b.shape[1]):
        total = None
        for x, y in zip(a[n, p], b[n, q], strict=True):
            product = lax.mul(*_broadcast_pair(jnp.asarray(x, dtype), jnp.asarray(y, dtype)))
            total = product if total is None else lax.add(*_broadcast_pair(total, product))
        products.append(jnp.zeros((), dtype) if total is None else total)
    same = tuple(lhs.shape[axis] for axis in lhs_batch)
    return entries(products, (*same, *a_free, *b_free))


def _gather(equation: Any, parts: Sequence[Entries]) -> Entries:
    x, indices = parts
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    aval = equation.outvars[0].aval
    fills = "FILL" in str(equation.params["mode"])
    empty = equation.params["fill_value"]
    if fills and empty is None:
        empty = {"f": np.nan, "b": True}.get(aval.dtype.kind)
    if fills and empty is None:
        empty = jnp.iinfo(aval.dtype).min if aval.dtype.kind == "i" else jnp.iinfo(aval.dtype).max
    spread = [axis for axis in range(len(aval.shape)) if axis not in numbers.offset_dims]
    kept = [
        axis for axis in range(x.ndim) if axis not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    ]
    out = np.empty(aval.shape, object)
    for at in np.ndindex(indices.shape[:-1]):
        starts: list[Any] = [0] * x.ndim
        for axis, batch_axis in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            starts[axis] = at[batch_axis]
        inside = None
        for n, axis in enumerate(numbers.start_index_map):
            start = starts[axis] = indices[(*at, n)]
            if fills:
                held = (start >= 0) & (start <= x.shape[axis] - sizes[axis])
                inside = held if inside is None else inside & held
        window = _window(x, starts, sizes).reshape([sizes[axis] for axis in kept])
        where: list[Any] = [slice(None)] * out.ndim
        for axis, n in zip(spread, at, strict=True):
            where[axis] = n
        if inside is not None:
            window = entries(
                [choose(inside, value, jnp.asarray(empty, aval.dtype)) for value in window.ravel()], window.shape
            )
        out[tuple(where)] = window if window.ndim else window[()]
    return out


def _scatter(equation: Any, parts: Sequence[Entries]) -> Entries:
    x, indices, updates = parts
    numbers, combine = equation.params["dimension_numbers"], SCATTERS[equation.primitive.name]
    clips = "CLIP" in str(equation.params["mode"])
    single = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    spread = [axis for axis in range(updates.ndim) if axis not in numbers.update_window_dims]
    for at in np.ndindex(indices.shape[:-1]):
        where: list[Any] = [slice(None)] * updates.ndim
        for axis, n in zip(spread, at, strict=True):
            where[axis] = n
        block = updates[tuple(where)]
        block = block if isinstance(block, np.ndarray) else entries([block], ())
        block = np.expand_dims(block, single) if single else block
        starts: list[Any] = [0] * x.ndim
        for axis, batch_axis in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
            starts[axis] = at[batch_axis]
        for n, axis in enumerate(numbers.scatter_dims_to_operand_dims):
            start = indices[(*at, n)]
            starts[axis] = jnp.clip(start, 0, x.shape[axis] - block.shape[axis]) if clips else start
        x = _placed(x, starts, block, combine)
    return x


def _dynamic_slice(equation: Any, parts: Sequence[Entries]) -> Entries:
    x, *starts = parts
    return _window(x, [start[()] for start in starts], equation.params["slice_sizes"])


def _dynamic_update_slice(equation: Any, parts: Sequence[Entries]) -> Entries:
    x, new, *starts = parts
    most = [n - size for n, size in zip(x.shape, new.shape, strict=True)]
    clipped = [_clip(start[()], last) for start, last in zip(starts, most, strict=True)]
    return _placed(x, clipped, new, SCATTERS["scatter"])


def _clip(start: Any, last: int) -> Any:
    known = _fixed(start)
    return jnp.clip(start, 0, last) if known is None else min(max(known, 0), last)


def _broadcast(params: Any, parts: Sequence[Any], aval: Any) -> Any:
    shape = [1] * len(params["shape"])
    for axis, n in zip(params["broadcast_dimensions"], parts[0].shape, strict=True):
        shape[axis] = n
    return np.broadcast_to(parts[0].reshape(shape), params["shape"])


def _slice(params: Any, parts: Sequence[Any], aval: Any) -> Any:
    first, last = params["start_indices"], params["limit_indices"]
    return parts[0][tuple(map(slice, first, last, params["strides"] or [1] * len(first)))]


def _pad(params: Any, parts: Sequence[Any], aval: Any) -> Any:
    x, filler = parts
    out = np.empty(aval.shape, x.dtype)
    for i in np.ndindex(out.shape):
        out[i] = filler[()]
    for i in np.ndindex(x.shape):
        at = tuple(low + n * (step + 1) for n, (low, _, step) in zip(i, params["padding_config"], strict=True))
        if all(0 <= n < size for n, size in zip(at, out.shape, strict=True)):
            out[at] = x[i]
    return out


# (params, arrays, shape of the output) -> array; also applied to NumPy arrays that are known while tracing.
LAYOUT: dict[str, Callable[[Any, Sequence[Any], Any], Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda params, parts, aval: parts[0].reshape(aval.shape),
    "squeeze": lambda params, parts, aval: parts[0].reshape(aval.shape),
    "expand_dims": lambda params, parts, aval: parts[0].reshape(aval.shape),
    "transpose": lambda params, parts, aval: parts[0].transpose(params["permutation"]),
    "rev": lambda params, parts, aval: np.flip(parts[0], params["dimensions"]),
    "slice": _slice,
    "concatenate": lambda params, parts, aval: np.concatenate(parts, params["dimension"]),
    "stack": lambda params, parts, aval: np.stack(parts, params["axis"]),
    "pad": _pad,
}
RULES: dict[str, Callable[[Any, Sequence[Entries]], Entries]] = {
    **dict.fromkeys([name for name in FOLDS if name.startswith("reduce")], _reduce),
    **dict.fromkeys([name for name in FOLDS if name.startswith("cum")], _cumulate),
    **dict.fromkeys(SCATTERS, _scatter),
    "argmax": _argbest,
    "argmin": _argbest,
    "dot_general": _dot,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
}
