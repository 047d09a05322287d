"""A short polling time, so tests of workers do not wait a quarter of a second per turn."""

import pytest

from jaxbandits.engine.cluster import shards


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.01)
