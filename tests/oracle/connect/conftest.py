"""Connect's published workers behind a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.pipelines.java.jars import connect_classpath
from tests.support.oracles import Oracle, compiled_java, running_oracle

SOURCES = sorted(Path(__file__).parent.glob("*.java"))


@pytest.fixture(scope="session")
def connect_oracle() -> Iterator[Oracle]:
    """Connect's leaders and workers, run from the published jars."""
    jars = connect_classpath()
    classes = compiled_java(SOURCES, kafka=jars)
    name = "org.apache.kafka.connect.runtime.distributed.ConnectOracle"
    with running_oracle(name, classes, kafka=jars) as oracle:
        yield oracle
