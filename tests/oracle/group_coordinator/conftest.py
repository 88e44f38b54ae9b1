"""The group coordinator's published assignors behind a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.oracles import Oracle, compiled_java, running_oracle

SOURCES = sorted(Path(__file__).parent.glob("*.java"))


@pytest.fixture(scope="session")
def coordinator_oracle() -> Iterator[Oracle]:
    """Uniform, range and sticky, run from the published jar."""
    with running_oracle("oracles.GroupCoordinatorOracle", compiled_java(SOURCES)) as oracle:
        yield oracle
