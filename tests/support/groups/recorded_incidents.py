"""Incidents as they were seen on a real cluster: recorded once, and played into a state again.

A recording is a gzipped file of JSON lines: first what was staged, then what a service would have been
told, by time (ms): ``records`` of ``__consumer_offsets`` in base64, ``ends`` with topic ids, topics that
are ``gone``, partitions that are ``leaderless``, ``transactions``, rounds of ``reassignments``, the
topics of Connect's ``workers``, and their records, ``connect``; and when coordinators ``moved``.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from caughtup.agents.clock import now_ms
from caughtup.agents.connect.reader import ConnectTopics, apply_records
from caughtup.agents.connect.watcher import decide_due
from caughtup.agents.kafka.clients import admin_client
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.partition_leaders import held_offsets
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.looks.reassignments import ReassignmentView
from caughtup.agents.probes.end_offsets import EndOffsetObserver
from caughtup.agents.probes.reassignments import ReassignmentObserver, ReassignmentRound
from caughtup.agents.probes.transactions import (
    MOST_PARTITIONS,
    TIMEOUT_SECONDS,
    TransactionObserver,
)
from caughtup.agents.settings import Settings
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.connect_clusters.topic_sets import TopicSet
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Batch, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import FramedRecords, ListedRecords
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.state.cluster import ClusterState
from caughtup.models.transactions.table import held_partitions
from caughtup.models.why.explain import why
from caughtup.models.why.links import Why
from caughtup.models.wire.consumer_offsets import decode_key

#: How often ends and transactions are asked for (s), and a group is assessed (ms).
_ROUND_SECONDS, _ASSESS_MS = 1.0, 2_000
#: Reassignments and Connect are asked for in every such round.
_ROUNDS = 4
#: These are told even without anything in them: then nothing is so.
_TOLD_EMPTY = ("transactions", "reassignments", "leaderless")
_RETRY_SECONDS = 0.2

Event = list[Any]
_Record = tuple[bytes | None, bytes | None]


class Recorder:
    """Reads all that a service would of a cluster, in a thread; a context manager."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
        self._connect: ConnectTopics | None = None
        self._moved: Callable[[], list[int | None]] = list
        self._state = ClusterState("recorded", {})
        self._events: list[Event] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._running: Future[None] | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._running = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._running is not None
        self._ended.set()
        self._running.result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def of(
        self, groups: Collection[str], wants: Callable[[str], bool], since_ms: int
    ) -> list[Event]:
        """Return what was told of groups, and of the topics that ``wants(topic)`` names, since a time."""
        assert self._running is not None
        if self._running.done():
            self._running.result()
        found = list[Event]()
        for kind, at_ms, values in list(self._events):
            if at_ms < since_ms:
                continue
            if kind == "records":
                kept = [
                    [_text(key), _text(value)]
                    for key, value in values
                    if key is not None and _group_of(key) in groups
                ]
            elif kind == "transactions":
                kept = [
                    one for one in values if any(wants(topic) for topic, _, _ in one["partitions"])
                ]
            elif kind == "moved":
                kept = values
            elif kind == "reassignments":
                cluster, ongoing = values
                kept = [cluster, [one for one in ongoing if wants(one["topic"])]]
            else:
                kept = [one for one in values if wants(one[0])]
            if kept or kind in _TOLD_EMPTY:
                found.append([kind, at_ms, kept])
        return found

    async def _run(self) -> None:
        async with OffsetLog(self._settings) as log:
            while not await log.open():  # noqa: ASYNC110 - brokers tell nobody of it
                await asyncio.sleep(_RETRY_SECONDS)
            self._moved = partial(_moved, log)
            following = asyncio.ensure_future(log.follow(self._take_records, self._taken))
            try:
                async with ClusterProtocol(
                    aiokafka_config(self._settings), TIMEOUT_SECONDS
                ) as protocol:
                    observer = EndOffsetObserver(
                        self._settings, self._state, admin_client(self._settings)
                    )
                    transactions = TransactionObserver(protocol)
                    config = aiokafka_config(self._settings)
                    async with ReassignmentObserver(config) as reassignments:
                        rounds = 0
                        while not self._ended.is_set():
                            await self._look(log, protocol, observer, transactions)
                            if rounds % _ROUNDS == 0:
                                await self._look_at_brokers(reassignments)
                                await asyncio.to_thread(self._look_at_connect)
                            rounds += 1
                            await asyncio.wait((following,), timeout=_ROUND_SECONDS)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    def _take_records(self, records: FramedRecords) -> list[Batch]:
        pairs = list(zip(records.keys(), records.values(), strict=True))
        if any(moved := self._moved()):
            self._events.append(["moved", now_ms(), moved])
        self._events.append(["records", now_ms(), pairs])
        return [decode_records(part) for part in split_generations(records)]

    async def _taken(self, batches: list[Batch], _: int) -> None:
        for batch in batches:
            self._state.apply_batch(batch, now_ms())

    async def _look(
        self,
        log: OffsetLog,
        protocol: ClusterProtocol,
        observer: EndOffsetObserver,
        transactions: TransactionObserver,
    ) -> None:
        state = self._state
        observed = await observer.observe(protocol, state.wanted_topics())
        now, ends = now_ms(), []
        for partition, one in sorted(observed.ends.items()):
            topic_id = observed.topic_ids.get(partition.topic)
            state.apply_ends(partition, one, topic_id, now)
            ends.append([*partition, *astuple(one), None if topic_id is None else topic_id.hex()])
        gone = [one for one, _ in state.ends if one not in observed.listing.present]
        for partition in gone:
            state.apply_ends(partition, None)
        self._events.append(["ends", now, ends])
        self._events.append(["gone", now, [[*one] for one in gone]])
        leaderless = sorted(observed.listing.leaderless.items())
        self._events.append(["leaderless", now, [[*one, down] for one, down in leaderless]])
        wanted, _ = held_partitions(state.ends, now, MOST_PARTITIONS)
        found, missing = await transactions.observe(wanted | held_offsets(log.partitions, now))
        state.transactions.apply(found, now, missing)
        self._events.append(["transactions", now, [msgspec.to_builtins(one) for one in found]])

    async def _look_at_brokers(self, observer: ReassignmentObserver) -> None:
        found = await observer.observe()
        if found.listed:
            told = msgspec.to_builtins((found.cluster, found.ongoing))
            self._events.append(["reassignments", now_ms(), told])

    def _look_at_connect(self) -> None:
        """Read the topics of workers, in a thread, once there is a Connect group."""
        if not self._state.connect.groups:
            return
        if self._connect is None:
            self._connect = ConnectTopics(self._settings)
        self._connect.look(self._state)
        sets = [[*one] for one in sorted(self._state.connect.topics)]
        self._events.append(["workers", now_ms(), sets])
        polled = sorted(self._connect.poll(_RETRY_SECONDS).records.items())
        told = [
            [topic, _text(one.key), _text(one.value), one.at_ms, one.offset]
            for topic, records in polled
            for one in records
        ]
        self._events.append(["connect", now_ms(), told])


def _moved(log: OffsetLog) -> list[int | None]:
    """Return when each partition of the log got another leader (ms), in order of the partitions."""
    return [one.moved_ms for _, one in sorted(log.partitions.items())]


def _group_of(key: bytes) -> str | None:
    try:
        return str(getattr(decode_key(key), "group", None))
    except Exception:  # noqa: BLE001 - a key that is unreadable is of no group
        return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class Recorded(NamedTuple):
    """A recording: what was staged, the group, when it was asked about (ms), and what was told."""

    staged: list[str]
    group: str
    asked_ms: int
    events: list[Event]

    def write(self, file: Path) -> None:
        """Write the recording."""
        first = {"staged": self.staged, "group": self.group, "asked_ms": self.asked_ms}
        lines = "\n".join(json.dumps(one, separators=(",", ":")) for one in (first, *self.events))
        file.write_bytes(gzip.compress(lines.encode(), mtime=0))

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a recording."""
        first, *events = map(json.loads, gzip.decompress(file.read_bytes()).decode().splitlines())
        return cls(first["staged"], first["group"], first["asked_ms"], events)

    def play(self) -> Why:
        """Tell a new state all of it, and return why the group is as it is."""
        state, assessed_ms = ClusterState("recorded", {}), 0
        for kind, at_ms, values in self.events:
            if at_ms > self.asked_ms:
                break
            _APPLIED[kind](state, at_ms, values)
            if at_ms - assessed_ms >= _ASSESS_MS:
                assessed_ms = at_ms
                _assess(state, self.group, at_ms)
        _assess(state, self.group, self.asked_ms)
        found = why(state, self.group, self.asked_ms)
        assert found is not None
        return found


def _assess(state: ClusterState, group: str, at_ms: int) -> None:
    state.rebalancing.settle(group, at_ms)
    decide_due(state, at_ms)
    for _ in state.decide(at_ms):
        pass
    for _ in state.reassignment_watch.assess(state.reassignments, at_ms):
        pass
    for _ in state.assess(group, at_ms):
        pass


def _apply_records(state: ClusterState, at_ms: int, values: list[list[str | None]]) -> None:
    keys, datas = ([_data(one[place]) for one in values] for place in (0, 1))
    for part in split_generations(ListedRecords(keys, datas)):
        state.apply_batch(decode_records(part), at_ms)


def _apply_ends(state: ClusterState, at_ms: int, values: list[list[Any]]) -> None:
    for topic, number, *ends, topic_id in values:
        known = None if topic_id is None else bytes.fromhex(topic_id)
        state.apply_ends(TopicPartition(topic, number), EndOffsets(*ends), known, at_ms)


def _apply_gone(state: ClusterState, _: int, values: list[list[Any]]) -> None:
    for topic, number in values:
        state.apply_ends(TopicPartition(topic, number), None)


def _apply_moved(state: ClusterState, _: int, values: list[int | None]) -> None:
    state.rebalancing.coordinator_moved_ms = lambda group: values[
        coordinator_partition(group, len(values))
    ]


def _apply_leaderless(state: ClusterState, _: int, values: list[list[Any]]) -> None:
    state.leaderless = {TopicPartition(*one): tuple(down) for *one, down in values}


def _apply_reassignments(state: ClusterState, _: int, values: list[Any]) -> None:
    cluster = msgspec.convert(values[0], ClusterRecord, strict=False)
    ongoing = msgspec.convert(values[1], tuple[ReassignmentRecord, ...], strict=False)
    ReassignmentView(state).take(ReassignmentRound(cluster, True, ongoing))


def _apply_workers(state: ClusterState, _: int, values: list[list[str]]) -> None:
    state.connect.read_topics(TopicSet(*one) for one in values)
    for topics, known in state.connect.topics.items():
        known.read.update(topics.topics)
    state.connect.looked = True


def _apply_connect(state: ClusterState, _: int, values: list[list[Any]]) -> None:
    for topic, key, value, at_ms, offset in values:
        record = ConsumerRecord(_data(key), _data(value), at_ms, True, offset)
        apply_records(state, topic, [record])


def _apply_transactions(state: ClusterState, at_ms: int, values: list[Any]) -> None:
    state.transactions.apply(msgspec.convert(values, list[OpenTransaction]), at_ms)


_APPLIED: Mapping[str, Callable[[ClusterState, int, list[Any]], None]] = {
    "records": _apply_records,
    "ends": _apply_ends,
    "gone": _apply_gone,
    "moved": _apply_moved,
    "leaderless": _apply_leaderless,
    "transactions": _apply_transactions,
    "reassignments": _apply_reassignments,
    "workers": _apply_workers,
    "connect": _apply_connect,
}
