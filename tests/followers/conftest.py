"""The follower's classes, compiled once, alone and in a Kafka Streams application."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.pipelines.java.jars import fetch_jars
from tests.support import oracles
from tests.support.oracles import Oracle, running_oracle

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
#: The first that has KIP-924; what it calls native code for isn't needed to decide.
OLDEST_STREAMS = "org.apache.kafka:kafka-streams:3.8.0"
NOT_CALLED = ("org.rocksdb", "com.github.luben", "org.lz4", "org.xerial.snappy")


@pytest.fixture(scope="session")
def follower_jar() -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return oracles.follower_jar()


@pytest.fixture(scope="session")
def follower_oracle(follower_jar: Path) -> Iterator[Oracle]:
    """The follower behind a pipe, with states that are made up for it."""
    classes = oracles.compiled_java(JAVA_SOURCES, follower_jar)
    with running_oracle("caughtup.FollowerOracle", follower_jar, classes) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def oldest_oracle(follower_jar: Path) -> Iterator[Oracle]:
    """The same jar on the oldest Kafka Streams that it is for, with the Jackson that comes with it."""
    jars = fetch_jars("oldest-streams", [OLDEST_STREAMS], NOT_CALLED)
    kafka = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    classes = oracles.compiled_java(JAVA_SOURCES, follower_jar, kafka=kafka)
    name = "caughtup.FollowerOracle"
    with running_oracle(name, follower_jar, classes, kafka=kafka) as oracle:
        yield oracle
