"""Apply the records of own topics to the state: each record isolated, refused ones counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from caughtup.agents.clock import now_ms
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.models.records.decoding import TOO_MANY, RefusedError
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:  # commands apply records, too, and start faster without Faust
    import faust

    from caughtup.agents.kept_channel import KeptChannel
    from caughtup.agents.topics.reader import Slice

#: The bytes of a key that are shown when its record fails.
_SHOWN_BYTES = 200
#: Smaller values take at most a few milliseconds to decode.
_LARGE_BYTES = 1 << 16

Decoded = TypeVar("Decoded")


@dataclass(frozen=True)
class AppliedTopic(Generic[Decoded]):
    """How the records of a topic (named without prefix) are decoded and applied to the state.

    ``decode`` gets key, value, the record's timestamp (ms; None: unknown), and the clock (ms) to
    check its times against; it raises RefusedError, and may run on another thread. ``apply``
    returns False if there is no room for the decoded value: then the record is refused with the
    message ``full``. ``brokers_clock``: whether the broker's clock counts as well, if the broker set
    the record's timestamp; it must not where the service's own clock dates the samples.
    """

    topic: str
    decode: Callable[[bytes | None, bytes | None, int | None, int], Decoded]
    apply: Callable[[ClusterState, Decoded], bool]
    full: str = ""
    brokers_clock: bool = True
    ahead_ms: int = 0

    def apply_record(
        self,
        state: ClusterState,
        key: bytes | None,
        value: bytes | None,
        at_ms: int | None = None,
        clock_ms: int | None = None,
    ) -> None:
        """Apply a record, unless it is refused. ``clock_ms``: None for this machine's clock."""
        with isolated_record(state, self.topic, key, clock_ms) as clock:
            self._apply(state, self.decode(key, value, at_ms, clock + self.ahead_ms))

    async def apply_in_turn(
        self,
        state: ClusterState,
        key: bytes | None,
        value: bytes | None,
        at_ms: int | None = None,
        clock_ms: int | None = None,
    ) -> None:
        """Apply a record like ``apply_record``; a large one is decoded in a thread."""
        if len(value or b"") < _LARGE_BYTES:
            self.apply_record(state, key, value, at_ms, clock_ms)
            return
        with isolated_record(state, self.topic, key, clock_ms) as clock:
            decoded = await asyncio.to_thread(self.decode, key, value, at_ms, clock + self.ahead_ms)
            self._apply(state, decoded)

    def _apply(self, state: ClusterState, decoded: Decoded) -> None:
        if not self.apply(state, decoded):
            raise RefusedError(TOO_MANY, self.full)


def apply_topic(
    app: faust.App,
    channel: KeptChannel[Slice],
    state: ClusterState,
    topic: AppliedTopic[Decoded],
    applied: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Register the agent of a topic: it applies the records from the channel to the state.

    ``applied`` is called and awaited after each slice of records.
    """

    @app.agent(channel, name=topic.topic.replace("-", "_"))
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                times = times_of(record, brokers_clock=topic.brokers_clock)
                await topic.apply_in_turn(state, record.key, record.value, *times)
            if applied is not None:
                await applied()


@contextmanager
def isolated_record(
    state: ClusterState, topic: str, key: bytes | None, clock_ms: int | None = None
) -> Iterator[int]:
    """Confine a failure inside the context to one record, and count it as refusal or fault.

    ``topic`` is the topic's name without prefix. Yields the clock (ms) to check the record's times
    against: ``clock_ms``, or this machine's.
    """
    clock = now_ms() if clock_ms is None else clock_ms
    subject = (key or b"")[:_SHOWN_BYTES].decode(errors="replace")
    with state.faults.isolated(f"reading {topic}", subject, clock):
        try:
            yield clock
        except RefusedError as error:
            state.refused.refuse(topic, key, error.code, error.message, clock)


def clock_against(at_ms: int, *, by_broker: bool) -> int:
    """Return the clock (ms) to check the times in a record against, given its timestamp.

    If the broker set the timestamp, as on topics that we created, its clock counts too; if the
    producer set it, only this machine's does.
    """
    return max(at_ms, now_ms()) if by_broker else now_ms()


def times_of(record: ConsumerRecord, *, brokers_clock: bool = True) -> tuple[int, int]:
    """Return a record's timestamp and the clock to check it against, both in ms."""
    by_broker = record.by_broker and brokers_clock
    return record.at_ms, clock_against(record.at_ms, by_broker=by_broker)
