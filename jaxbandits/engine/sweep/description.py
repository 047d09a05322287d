"""Builds the manifest of a sweep."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np

from jaxbandits.base import Key
from jaxbandits.engine.store.tables import describe_table, table_of
from jaxbandits.engine.sweep.layout import Layout, OpenLayout
from jaxbandits.engine.sweep.program import Lane, fingerprint
from jaxbandits.engine.sweep.tasks import Job, current_settings


def describe_call(job: Job, layout: Layout | OpenLayout) -> dict[str, Any]:
    """Returns the arguments of a sweep as in its manifest, without arguments that are None."""
    arguments = {
        "rows": job.rows,
        "seeds": job.seeds,
        "max_rounds": "horizon" if job.max_rounds is None else job.max_rounds,
        "horizon": None if job.horizon is None else describe_horizon(job.horizon),
        "key": describe_key(job.key),
        "lanes": layout.lanes,
        "chunk": layout.chunk,
        "scalars": layout.scalars,
    }
    return {
        "arguments": {name: value for name, value in arguments.items() if value is not None},
        "tasks": describe_table(table_of(job.tasks)),
    }


def describe_sweep(lane: Lane) -> dict[str, Any]:
    """Returns the manifest: everything that affects the bits of the results, and the columns."""
    from jaxbandits import __version__  # set only at the end of the package's own import

    job = lane.job
    program, columns = fingerprint(lane)
    device = lane.layout.mesh.devices.flat[0]
    return describe_call(job, lane.layout) | {
        "program": {"sha256": program},  # hash of build and metrics, with the values that they close over
        "functions": {"build": name_of(job.build), "metrics": name_of(job.metrics)},
        "columns": {"row": "int64", "seed": "int64"} | columns,
        "made_by": {
            "jaxbandits": __version__,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "numpy": np.__version__,
            "platform": device.platform,
            "device_kind": device.device_kind,
            "x64": current_settings().enable_x64,
        },
        "settings": current_settings()._asdict(),  # JAX settings, for the message if the program differs
    }


def describe_horizon(horizon: np.ndarray) -> int | list[int]:
    """Returns the horizons of all rows, as one number if they are equal."""
    return int(horizon[0]) if (horizon == horizon[0]).all() else horizon.tolist()


def describe_key(key: Key) -> dict[str, Any]:
    """Returns a PRNG key, typed or raw, as plain values."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()}
    return {"impl": "raw", "data": np.asarray(key).tolist()}


def name_of(function: Callable | None) -> str | None:
    """Returns the module and the name of a function, as far as they are known."""
    inner = getattr(function, "func", function)  # the function of a functools.partial
    if inner is None:
        return None
    return f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
