"""A warning only advises: if it cannot be written, the call still succeeds."""

import contextlib
import io
import sys
import warnings

import numpy as np
import pytest

from jaxbandits import linear


@contextlib.contextmanager
def written(action):
    """Writes warnings to stderr, as outside of pytest, which collects them."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as stderr:
        warnings.showwarning = lambda message, *_: sys.stderr.write(str(message))
        warnings.simplefilter(action)
        yield stderr


def warned():
    return linear.od_linbai(np.eye(3), horizon=2)


def test_a_warning_is_written():
    with written("always") as stderr:
        warned()
        assert "horizon 2 is too short" in stderr.getvalue()


def test_a_warning_is_dropped_if_stderr_is_closed():
    with written("always") as stderr:
        stderr.close()
        warned()


def test_filter_turns_a_warning_into_an_error_if_stderr_is_closed():
    with written("error") as stderr:
        stderr.close()
        with pytest.raises(UserWarning, match="too short"):
            warned()
