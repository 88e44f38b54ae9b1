"""The follower for Kafka Streams, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.oracles import follower_jar


@pytest.fixture(scope="session")
def jar() -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return follower_jar()
