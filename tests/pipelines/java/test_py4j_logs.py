"""Nothing but py4j's own lines about a JVM that has ended is suppressed."""

from __future__ import annotations

import logging

import pytest

from caughtup.pipelines.java.py4j_logs import silence_py4j


def test_only_what_py4j_says_of_a_jvm_that_is_gone_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    silence_py4j()
    logging.getLogger().error("Exception while sending command.")
    logging.getLogger("py4j.java_gateway").error("An error occurred")
    logging.getLogger().error("another")
    logging.getLogger("caughtup").error("Exception while sending command.")
    assert [(one.name, one.message) for one in caplog.records] == [
        ("root", "another"),
        ("caughtup", "Exception while sending command."),
    ]
