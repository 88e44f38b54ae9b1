"""The published coordinator's records, for every test that reads or writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
import pytest

from tests.oracle.wire.records import Coordinator


@pytest.fixture(scope="module", autouse=True)
def errors_as_they_are() -> Iterator[None]:
    """Have py4j raise Java's errors as they are: pyspark, if it was used before, asks Spark of them."""
    before = py4j.java_gateway.get_return_value
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    yield
    py4j.java_gateway.get_return_value = before


@pytest.fixture(scope="session")
def coordinator(jvm: Any) -> Coordinator:
    return Coordinator(jvm)
