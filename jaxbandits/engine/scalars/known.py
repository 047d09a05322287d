"""Values that are known while tracing, computed at once.

NumPy gives the same bits as XLA if an operation is exact or rounded once, as nearly all are; XLA evaluates the others.
An XLA program for every sum of two constants would take longer than all other tracing.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbandits.engine.jaxprs import bind, eval_context
from jaxbandits.engine.scalars.rules import LAYOUT

# Integers alone: for floats, the sign of a zero would be undefined.
_INTEGERS = {"max": np.maximum, "min": np.minimum}
_FLOATS = {"div": np.divide, "sqrt": np.sqrt, "is_finite": np.isfinite, "floor": np.floor}
_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "square": np.square,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "copy": np.asarray,
}  # fmt: skip


def at_once(equation: Any, values: Sequence[Any]) -> list[Any]:
    """Evaluates an equation while tracing. An elementwise one may be evaluated for single entries."""
    with np.errstate(all="ignore"):
        out = _by_numpy(equation, values)
    if out is not None:
        return [np.asarray(out, equation.outvars[0].aval.dtype)]
    # Not `ensure_compile_time_eval`, which also applies inside the rules that lower these operations. A constant there,
    # such as the positions that an argmax compares, would be compiled while the module around it is being built.
    with eval_context():
        return list(map(np.asarray, bind(equation, values)))


def _by_numpy(equation: Any, values: Sequence[Any]) -> Any:
    """Evaluates an equation by NumPy. Returns None if XLA's result may differ."""
    name, params, aval = equation.primitive.name, equation.params, equation.outvars[0].aval
    dtypes = [v.aval.dtype for v in equation.invars]
    if not all(isinstance(dtype, np.dtype) for dtype in (aval.dtype, *dtypes)):
        return None
    if name == "iota":
        shape = [1] * len(aval.shape)
        shape[params["dimension"]] = -1
        return np.broadcast_to(np.arange(aval.shape[params["dimension"]], dtype=aval.dtype).reshape(shape), aval.shape)
    given = [np.asarray(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
    kinds = {dtype.kind for dtype in dtypes}
    if name in LAYOUT:
        return LAYOUT[name](params, given, aval)
    if name == "select_n" and kinds <= set("biuf") and dtypes[0].kind == "b":
        return np.where(given[0], given[2], given[1])
    if name == "convert_element_type":
        # XLA has rules of its own for converting a float to an integer.
        is_exact = kinds <= set("biu") or aval.dtype.kind == "f"
        return given[0].astype(aval.dtype) if is_exact and kinds <= set("biuf") else None
    rule = _NUMBERS.get(name) or (_FLOATS if kinds == {"f"} else _INTEGERS).get(name)
    if rule is None or not kinds <= set("biuf"):
        return None
    return rule(*given)
