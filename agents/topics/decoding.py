"""Takes records of our own topics: one that can't be taken is counted, and costs itself alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from caughtup.agents.clock import now_ms
from caughtup.agents.topics.log import OwnRecord
from caughtup.models.records.decoding import RefusedError
from caughtup.models.state.cluster import ClusterState

#: Bytes of a key that name it where something fails.
_SHOWN = 200


@contextmanager
def taking(
    state: ClusterState, topic: str, key: bytes | None, clock_ms: int | None = None
) -> Iterator[int]:
    """Count what is refused within, and whatever else fails, which is a bug of ours.

    ``topic`` is the topic's name without prefix. Gives the clock (ms) to hold the record's times
    against: ``clock_ms``, or ours.
    """
    clock = now_ms() if clock_ms is None else clock_ms
    subject = (key or b"")[:_SHOWN].decode(errors="replace")
    with state.faults.isolated(f"reading {topic}", subject, clock):
        try:
            yield clock
        except RefusedError as error:
            state.refused.refuse(topic, key, error.code, error.message, clock)


def clock_against(at_ms: int, *, by_broker: bool) -> int:
    """Return the clock to hold a record's timestamp and other times of it against (ms).

    That is the broker's where it stamps records, as our topics are made; where whoever wrote the
    record chose its timestamp, it is ours.
    """
    return max(at_ms, now_ms()) if by_broker else now_ms()


def times_of(record: OwnRecord) -> tuple[int, int]:
    """Return when a record was written (ms), and the clock to hold that against."""
    return record.at_ms, clock_against(record.at_ms, by_broker=record.by_broker)
