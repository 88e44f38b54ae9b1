"""The published coordinator's records, for every test that reads or writes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.wire.records import Coordinator


@pytest.fixture(scope="session")
def coordinator(jvm: Any) -> Coordinator:
    return Coordinator(jvm)
