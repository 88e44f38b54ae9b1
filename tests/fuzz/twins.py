"""Two clusters with the same groups; in one of them others write whatever they want."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.page.parts import whole_steps
from caughtup.models.faults import Fault
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Record, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import ListedRecords
from caughtup.models.records.fields import json_values
from caughtup.models.records.movements import (
    PARTITIONS,
)
from caughtup.models.shown.lag import lag_lines
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import Forgetting
from tests.fuzz import applications
from tests.fuzz.innocents import INNOCENT, ends_of_topics, first_records, next_records
from tests.fuzz.service_topics import Told
from tests.support.groups.records import GROUP, START_MS
from tests.support.observability.scraping import COMPATIBLE
from tests.support.states import TOLD

_TURN_MS = 5_000


class FaultsError(AssertionError):
    """Something failed although nothing should: what, and where."""


class Cluster:
    """A state, with everything that the service makes of it."""

    def __init__(self) -> None:
        self.state = ClusterState("cluster-1", {GROUP: TOLD, **applications.PARAMETERS})
        self.faults: list[str] = []
        self.state.faults.on_fault = self._note
        self._health = Health(ready=True, reader_lag=0)
        self._labels = GroupLabels()
        self._forgetting = Forgetting(self.state)
        #: What was decided and told of each group, in its order.
        self.published: dict[str, list[bytes]] = {}

    def _note(self, fault: Fault, error: Exception) -> None:
        told = "".join(traceback.format_exception(error))
        self.faults.append(f"{fault.part} of {fault.subject!r}:\n{told}")

    def read(self, records: Sequence[Record], now_ms: int) -> Counter[str]:
        """Apply a poll as the agent does, and count what was refused, by code."""
        refused: Counter[str] = Counter()
        keys, values = zip(*records, strict=True) if records else ((), ())
        for chunk in split_generations(ListedRecords(keys, values)):
            batch = decode_records(chunk)
            for (_, code), count in batch.errors.items():
                refused[code] += count
            self.state.apply_batch(batch, now_ms)
        return refused

    def look(self, topic: str, ends: Iterable[int], now_ms: int, topic_id: bytes | None) -> None:
        for partition, end in enumerate(ends):
            sample = EndOffsets(0, end, end, now_ms)
            self.state.apply_ends(TopicPartition(topic, partition), sample, topic_id, now_ms)

    def turn(self, now_ms: int) -> dict[str, list[bytes]]:
        """Decide, assess and forget, and give what is shown of each innocent group."""
        state = self.state
        for recommended in state.decide(now_ms):
            self._publish(recommended.group, json_values(recommended))
        for event in state.applications.movement_events(now_ms):
            self._publish(event.group, json_values(event))
        for partition in list(state.reassignments.ongoing):
            for event in state.reassignment_events.new_events(state.reassignments, partition):
                PARTITIONS.encode(event)
        groups = state.group_names()
        for group in groups:
            for _ in state.assess(group, now_ms):
                pass
        for _ in state.reassignment_watch.assess(state.reassignments, now_ms):
            pass
        state.forget_gone()
        self._forgetting.forget(now_ms)
        shown = self._scraped() | self._paged(now_ms)
        for group in groups:
            shown[f"lag of {group}"] = [
                msgspec.json.encode(line) for line in lag_lines(state, group)
            ]
        return shown

    def _publish(self, group: str, record: Mapping[str, Any]) -> None:
        value = msgspec.json.encode(record)
        if group in INNOCENT:
            self.published.setdefault(group, []).append(value)

    def _scraped(self) -> dict[str, list[bytes]]:
        pieces = exposition(self.state, self._health, self._labels, others=COMPATIBLE)
        lines = b"".join(pieces).split(b"\n")
        return {
            f"series of {group}": [
                line
                for line in lines
                if f'group="{group}"'.encode() in line and b"_due" not in line
            ]
            for group in INNOCENT
        }

    def _paged(self, now_ms: int) -> dict[str, list[bytes]]:
        steps = whole_steps(self.state, self._health, now_ms)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                page = msgspec.json.decode(msgspec.json.encode(done.value))
                break
        return {
            f"page of {group}": [
                msgspec.json.encode(row)
                for row in (*page["groups"], *page["applications"])
                if row["group"] == group
            ]
            for group in INNOCENT
        }


class Twins:
    """Both clusters, turn after turn; ``refused`` counts hostile records by why, where known."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.turns = 0
        self.longest_turn_seconds = 0.0
        self.refused: Counter[str] = Counter()
        self._spared, self._beset = Cluster(), Cluster()
        self._begin()

    @property
    def beset(self) -> ClusterState:
        """The state that hostile records are read into."""
        return self._beset.state

    def turn(self, records: Sequence[Record], told: Sequence[Told]) -> None:
        """Read hostile records with one state, and compare all that both show of innocent groups.

        Raises FaultsError where anything failed, and AssertionError where anything differs.
        """
        self.turns += 1
        self.now_ms += _TURN_MS
        good, half = next_records(self.turns, self.now_ms), len(records) // 2
        for cluster in (self._spared, self._beset):
            self._looks(cluster)
        began = time.process_time()  # other tests may have the processor
        self.refused += self._beset.read([*records[:half], *good, *records[half:]], self.now_ms)
        for one in told:
            one.apply(self._beset.state, one.key, one.value, self.now_ms)
        shown = self._beset.turn(self.now_ms)
        self.longest_turn_seconds = max(self.longest_turn_seconds, time.process_time() - began)
        self._spared.read(good, self.now_ms)
        expected = self._spared.turn(self.now_ms)
        if faults := self._beset.faults or self._spared.faults:
            raise FaultsError("\n".join(faults))
        for what, lines in expected.items():
            assert lines, what
            assert shown[what] == lines, what
        assert self._beset.published == self._spared.published

    def _begin(self) -> None:
        for cluster in (self._spared, self._beset):
            cluster.read(first_records(), self.now_ms)
            self._looks(cluster)

    def _looks(self, cluster: Cluster) -> None:
        for topic, ends, topic_id in ends_of_topics(self.turns):
            cluster.look(topic, ends, self.now_ms, topic_id)
