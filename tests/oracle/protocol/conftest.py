"""Kafka's own messages, as the published jar writes and reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.protocol.messages import Messages


@pytest.fixture(scope="session")
def messages(jvm: Any) -> Messages:
    return Messages(jvm)
