"""What py4j logs about a JVM that has ended: its callers report it in one line."""

from __future__ import annotations

import logging

#: The message that py4j logs, with a stack trace, for each call without an answer.
_UNANSWERED = "Exception while sending command."


def silence_py4j() -> None:
    """Suppress py4j's log lines about a JVM that has ended.

    py4j logs some of them with the root logger, whose first record sends the records of all
    loggers to standard error.
    """
    for module in ("clientserver", "java_gateway"):
        logging.getLogger(f"py4j.{module}").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.msg != _UNANSWERED
