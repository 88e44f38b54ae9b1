"""Refused, reset and malformed requests, counted by reason and logged once a minute each."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Literal, get_args

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from caughtup.agents.process.fault_log import LogLimit

log = logging.getLogger(__name__)

CONNECTIONS, FILES, SLOW_HEADER, SLOW_READER, TOO_LARGE, MALFORMED = (
    "connections",
    "files",
    "slow_header",
    "slow_reader",
    "too_large",
    "malformed",
)
_MESSAGES = {
    CONNECTIONS: "closed a connection: too many",
    FILES: "no connection could be accepted for a second: the process may open no more files",
    SLOW_HEADER: "closed a connection: its request's header took too long",
    SLOW_READER: "closed a connection: its client doesn't read",
    TOO_LARGE: "closed a connection: its request is too large",
    MALFORMED: "answered 400 to a request that can't be parsed",
}
#: What a 503 says that there are too many of.
Many = Literal[
    "connections",
    "event streams",
    "forwarded requests",
    "listings",
    "questions",
    "questions to the history",
    "scrapes",
    "series",
    "views",
    "whole states",
]


def _label(what: str) -> str:
    return what.replace(" ", "_")


#: All reasons as label values, sorted.
REASONS = tuple(sorted({*_MESSAGES, *map(_label, get_args(Many))}))


class Refusals:
    """Counts refusals in ``counts``, by reason."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._log_limit = LogLimit()

    def count(self, reason: str, peer: str = "") -> None:
        """Count a connection that was closed, or a request that can't be parsed."""
        self._note(reason, f"{_MESSAGES[reason]}{f' ({peer})' if peer else ''}")

    def unavailable(self, what: Many, retry_seconds: int) -> web.HTTPServiceUnavailable:
        """Count a refusal because there are too many of ``what``, and return it."""
        self._note(_label(what), f"answered 503: too many {what}")
        headers = {"Retry-After": str(retry_seconds)}
        return web.HTTPServiceUnavailable(text=f"too many {what}\n", headers=headers)

    def _note(self, reason: str, message: str) -> None:
        self._counts[reason] += 1
        more = self._log_limit.more(reason)
        if more is not None:
            log.warning("%s%s", message, more)


class Malformed(logging.Filter):
    """Counts the malformed requests that aiohttp logs with a traceback each."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__()
        self._refusals = refusals

    @classmethod
    def logger(cls, refusals: Refusals) -> logging.Logger:
        """Return a logger for aiohttp, at DEBUG because it logs some malformed requests there."""
        logger = logging.getLogger(f"{log.name}.aiohttp")
        logger.setLevel(logging.DEBUG)
        for earlier in list(logger.filters):  # of an earlier server
            logger.removeFilter(earlier)
        logger.addFilter(cls(refusals))
        return logger

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record; count it instead if it is a malformed request."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if not isinstance(error, HttpProcessingError):
            return record.levelno >= logging.WARNING
        self._refusals.count(MALFORMED)
        return False
