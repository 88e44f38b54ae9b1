"""The group coordinator's published assignors behind a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.oracles import Oracle, compile_java, running_oracle

SOURCES = sorted(Path(__file__).parent.glob("*.java"))


@pytest.fixture(scope="session")
def coordinator_oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """Uniform, range and sticky, run from the published jar."""
    classes = tmp_path_factory.mktemp("coordinator-classes")
    compile_java(SOURCES, classes)
    with running_oracle("oracles.GroupCoordinatorOracle", classes) as oracle:
        yield oracle
