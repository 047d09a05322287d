"""Workers are looked at often, so that no test waits for a quarter of a second at every turn."""

import pytest

from jaxbandits.engine.cluster import shards


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.01)
