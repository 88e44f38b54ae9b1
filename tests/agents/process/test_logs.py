"""Lines of the log as JSON: one object a line, whatever is in a message."""

from __future__ import annotations

import json
import logging
import sys

from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.process.logs import JsonLines


def record(message: str, *arguments: object, exc_info: object = None) -> logging.LogRecord:
    made = logging.LogRecord("caughtup.x", logging.WARNING, "x.py", 1, message, arguments, exc_info)  # type: ignore[arg-type]
    made.created = 1_764_000_000.25
    return made


def test_a_line_has_time_level_logger_and_message() -> None:
    line = JsonLines().format(record("lag of %s: %d", "orders", 5))
    assert json.loads(line) == {
        "time": "2025-11-24T16:00:00.250Z",
        "level": "warning",
        "logger": "caughtup.x",
        "message": "lag of orders: 5",
    }


@given(st.text())
def test_whatever_the_message_it_is_one_line_of_json(message: str) -> None:
    line = JsonLines().format(record("%s", message))
    assert "\n" not in line
    assert json.loads(line)["message"] == message


def test_an_exception_is_in_the_same_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        line = JsonLines().format(record("failed", exc_info=sys.exc_info()))
    assert "ValueError: broken" in json.loads(line)["exception"]
    assert "\n" not in line
