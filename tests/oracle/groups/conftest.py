"""The published assignors of consumer groups and of streams groups behind pipes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.demo.apps.published_assignor import PublishedConsumerAssignor
from caughtup.pipelines.java.find import QUICK_START
from caughtup.pipelines.java.jars import fetch_jars
from tests.support.oracles import Oracle, compiled_java, running_oracle

_HERE = Path(__file__).parent
_JAVA = sorted((_HERE / "java").glob("*.java"))
_LINE = _HERE / "java" / "StreamsGroupLine.java"


class _Untimed(PublishedConsumerAssignor):
    options = (*PublishedConsumerAssignor.options, *QUICK_START)


@pytest.fixture(scope="session")
def kafka_4_4() -> str:
    """The class path of the group coordinator 4.4.0 and its clients."""
    coordinates = [
        f"org.apache.kafka:{name}:4.4.0" for name in ("kafka-clients", "kafka-group-coordinator")
    ]
    jars = fetch_jars("kafka-coordinator-4.4", coordinates)
    return os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))


@pytest.fixture(scope="session")
def consumer_group_oracle() -> Iterator[PublishedConsumerAssignor]:
    """The assignors of the clients and of the coordinator 4.3.1."""
    with _Untimed() as published:
        yield published


@pytest.fixture(scope="session")
def streams_group_oracle() -> Iterator[Oracle]:
    """The task assignor of the coordinator 4.3.1."""
    with running_oracle("oracles.StreamsGroupOracle", compiled_java(_JAVA)) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def consumer_group_oracle_4_4(kafka_4_4: str) -> Iterator[PublishedConsumerAssignor]:
    """The assignors of the clients and of the coordinator 4.4.0."""

    class Published44(_Untimed):
        jars = staticmethod(lambda: kafka_4_4)

    with Published44() as published:
        yield published


@pytest.fixture(scope="session")
def streams_group_oracle_4_4(kafka_4_4: str) -> Iterator[Oracle]:
    """The task assignor of the coordinator 4.4.0."""
    sources = [_LINE, *sorted((_HERE / "java_4_4").glob("*.java"))]
    classes = compiled_java(sources, kafka=kafka_4_4)
    with running_oracle("oracles.StreamsGroupOracle44", classes, kafka=kafka_4_4) as oracle:
        yield oracle
