"""Takes records of our own topics: one that can't be taken is counted, and costs itself alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from caughtup.agents.clock import now_ms
from caughtup.models.records.decoding import RefusedError
from caughtup.models.state import ClusterState

#: How aiokafka marks a timestamp that the broker gave.
_LOG_APPEND_TIME = 1


@contextmanager
def taking(
    state: ClusterState, topic: str, key: bytes | None, clock_ms: int | None = None
) -> Iterator[int]:
    """Count what is refused within, and whatever else fails, which is a bug of ours.

    ``topic`` is the topic's name without prefix. Gives the clock (ms) to hold the record's times
    against: ``clock_ms``, or ours.
    """
    clock = now_ms() if clock_ms is None else clock_ms
    with state.faults.isolated(f"reading {topic}", (key or b"").decode(errors="replace"), clock):
        try:
            yield clock
        except RefusedError as error:
            state.refused.refuse(topic, key, error.code, error.message, clock)


def times_of(message: Any) -> tuple[int, int]:
    """Return when a message of aiokafka's was written, and the clock to hold that against (ms).

    That is the broker's where it stamps records, as our topics are made; where whoever wrote the
    record chose its timestamp, it is ours.
    """
    at_ms, clock_ms = int(message.timestamp * 1000), now_ms()
    if message.timestamp_type == _LOG_APPEND_TIME:
        clock_ms = max(at_ms, clock_ms)
    return at_ms, clock_ms
