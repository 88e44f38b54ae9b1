"""What the web port refuses, cuts off and can't parse: counted by reason, a line a minute each."""

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
_SAID = {
    CONNECTIONS: "closed a connection: too many",
    FILES: "no connection could be accepted for a second: the process may open no more files",
    SLOW_HEADER: "closed a connection: its request's header took too long",
    SLOW_READER: "closed a connection: its client doesn't read",
    TOO_LARGE: "closed a connection: its request is too large",
    MALFORMED: "answered 400 to a request that can't be parsed",
}
#: What there may be too many of: answered with 503.
Many = Literal[
    "connections",
    "event streams",
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


#: Every reason there is, as labels have it, sorted.
REASONS = tuple(sorted({*_SAID, *map(_label, get_args(Many))}))


class Refusals:
    """Counts refusals in ``counts``, by reason."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._due = LogLimit()

    def count(self, reason: str, peer: str = "") -> None:
        """Count a connection that was closed, or a request that can't be parsed."""
        self._note(reason, f"{_SAID[reason]}{f' ({peer})' if peer else ''}")

    def unavailable(self, what: Many, retry_seconds: int) -> web.HTTPServiceUnavailable:
        """Count an answer that can't be given now, and return the refusal; ``what`` is too many."""
        self._note(_label(what), f"answered 503: too many {what}")
        headers = {"Retry-After": str(retry_seconds)}
        return web.HTTPServiceUnavailable(text=f"too many {what}\n", headers=headers)

    def _note(self, reason: str, said: str) -> None:
        self._counts[reason] += 1
        more = self._due.more(reason)
        if more is not None:
            log.warning("%s%s", said, more)


class Malformed(logging.Filter):
    """Takes what aiohttp logs of requests that can't be parsed, each with a traceback."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__()
        self._refusals = refusals

    @classmethod
    def logger(cls, refusals: Refusals) -> logging.Logger:
        """Return what aiohttp logs to: some of those requests it logs only for debugging."""
        logger = logging.getLogger(f"{log.name}.aiohttp")
        logger.setLevel(logging.DEBUG)
        for earlier in list(logger.filters):  # of a server that is no more
            logger.removeFilter(earlier)
        logger.addFilter(cls(refusals))
        return logger

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged; count it if it is of such a request."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if not isinstance(error, HttpProcessingError):
            return record.levelno >= logging.WARNING
        self._refusals.count(MALFORMED)
        return False
