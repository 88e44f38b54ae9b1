"""The follower's classes, compiled once, alone and in a Kafka Streams application."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.followers.kafka_streams.jar import build_jar
from caughtup.pipelines.java.jars import fetch_jars
from tests.support.oracles import Oracle, compile_java, running_oracle

JAVA_SOURCES = sorted((Path(__file__).parent / "java").glob("*.java"))
#: The first that has KIP-924; what it calls native code for isn't needed to decide.
OLDEST_STREAMS = "org.apache.kafka:kafka-streams:3.8.0"
NOT_CALLED = ("org.rocksdb", "com.github.luben", "org.lz4", "org.xerial.snappy")


@pytest.fixture(scope="session")
def follower_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``caughtup-follower.jar``, as anybody would build it."""
    return build_jar(tmp_path_factory.mktemp("follower") / "caughtup-follower.jar")


@pytest.fixture(scope="session")
def follower_oracle(
    follower_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Oracle]:
    """The follower behind a pipe, with states that are made up for it."""
    classes = tmp_path_factory.mktemp("oracle")
    compile_java(JAVA_SOURCES, classes, follower_jar)
    with running_oracle("caughtup.FollowerOracle", follower_jar, classes) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def oldest_oracle(follower_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """The same jar on the oldest Kafka Streams that it is for, with the Jackson that comes with it."""
    jars = fetch_jars("oldest-streams", [OLDEST_STREAMS], NOT_CALLED)
    kafka = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    classes = tmp_path_factory.mktemp("oldest-oracle")
    compile_java(JAVA_SOURCES, classes, follower_jar, kafka=kafka)
    name = "caughtup.FollowerOracle"
    with running_oracle(name, follower_jar, classes, kafka=kafka) as oracle:
        yield oracle
