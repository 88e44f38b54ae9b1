"""The follower's classes, compiled once, alone and in a Kafka Streams application."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.followers.kafka_streams.jar import build_jar
from tests.support.oracles import Oracle, compile_java, running_oracle

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))


@pytest.fixture(scope="session")
def follower_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return build_jar(tmp_path_factory.mktemp("follower") / "caughtup-follower.jar")


@pytest.fixture(scope="session")
def follower_oracle(
    follower_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Oracle]:
    """The follower behind a pipe, with states that are made up for it."""
    classes = tmp_path_factory.mktemp("follower-oracle")
    compile_java(JAVA_SOURCES, classes, follower_jar)
    with running_oracle("caughtup.FollowerOracle", follower_jar, classes) as oracle:
        yield oracle
