"""Connect's published workers behind a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from caughtup.pipelines.java.jars import connect_classpath
from tests.support.oracles import Oracle, compile_java, running_oracle

SOURCES = sorted(Path(__file__).parent.glob("*.java"))


@pytest.fixture(scope="session")
def connect_oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """Connect's leaders and workers, run from the published jars."""
    classes, jars = tmp_path_factory.mktemp("connect-classes"), connect_classpath()
    compile_java(SOURCES, classes, kafka=jars)
    name = "org.apache.kafka.connect.runtime.distributed.ConnectOracle"
    with running_oracle(name, classes, kafka=jars) as oracle:
        yield oracle
