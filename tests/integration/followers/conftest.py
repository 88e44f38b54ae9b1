"""The follower for Kafka Streams, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.followers.kafka_streams.jar import build_jar


@pytest.fixture(scope="session")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return build_jar(tmp_path_factory.mktemp("follower") / "caughtup-follower.jar")
