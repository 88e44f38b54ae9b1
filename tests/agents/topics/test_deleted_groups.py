"""A thousand groups come and go, of every protocol, and leave nothing behind in any table."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.models.groups.consumer import ConsumerGroup
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Record
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import GRACE_MS, Forgetting
from tests.support.groups.new_groups import consumer_group, streams_group
from tests.support.groups.records import START_MS, commit, consumer_generation
from tests.support.groups.streams import HANDING_OVER, WARMING, generation
from tests.support.observability.scraping import COMPATIBLE
from tests.support.own_topics.application_states import read_state_record, state_record
from tests.support.sizes import daily
from tests.support.states import TOLD, cluster_state, read

GROUPS = daily(250, 1_000)
#: Places that were somebody's and will be somebody else's: as many as there ever were at once.
PLACES = (
    "state.commits.row_index._topics",
    "state.commits.row_index._free",
    "state.commits.steps",
    "state.ends.columns._free",
)
#: Ids that no row has any more are swept out once there may be many of them.
IDS = "state.commits.topic_ids"
#: What is counted or logged of the past, and has bounds of its own.
NO_TABLES = (
    "happenings",
    "_happenings",
    "counts",
    "faults",
    "refused",
    "set_aside",
    "_parameters",
    "parameters",
)


def sizes(value: Any, path: str = "state", seen: set[int] | None = None) -> dict[str, int]:
    """Count what every table holds that can be reached from a value, by where it is."""
    seen = set() if seen is None else seen
    found: dict[str, int] = {}
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return found
    seen.add(id(value))
    if isinstance(value, Mapping | set | frozenset | deque | list | tuple | array):
        found[path] = len(value)
    if isinstance(value, Mapping):
        for key, held in list(value.items()):
            found |= sizes(held, f"{path}[{key}]", seen)
    for name, held in attributes(value):
        if name not in NO_TABLES:
            found |= sizes(held, f"{path}.{name}", seen)
    return found


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif type(value).__module__.startswith("caughtup"):
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        yield from ((name, getattr(value, name)) for name in names if hasattr(value, name))


class Cluster:
    """A state and what shows it, to which groups come and from which they go."""

    def __init__(self) -> None:
        self.state = ClusterState(
            "cluster-1", {f"streams-{number}": TOLD for number in range(GROUPS)}
        )
        self.labels = GroupLabels()
        self.forgetting = Forgetting(self.state)
        self.now_ms = START_MS

    def turn(self) -> None:
        """Let everything have its turn that looks at groups."""
        self.now_ms += 20_000
        for _ in self.state.decide(self.now_ms):
            pass
        self.state.applications.movement_events(self.now_ms)
        for group in self.state.group_names():
            for _ in self.state.assess(group, self.now_ms):
                pass
        self.state.forget_gone()
        self.forgetting.forget(self.now_ms)
        for _ in exposition(self.state, Health(ready=True), self.labels, others=COMPATIBLE):
            pass

    def sizes(self) -> dict[str, int]:
        return sizes(self.state) | sizes(self.labels, "labels")

    def come(self, number: int) -> None:
        self._look(number, EndOffsets(0, 90, 100, self.now_ms))
        read(self.state, *self._records(number), seen_ms=self.now_ms)
        if number % 4 == 1:
            told = state_record(*WARMING, given={1: (["0_0"], []), 2: ([], ["0_1"])})
            self.state.applications.apply_state(
                f"streams-{number}", read_state_record(told, START_MS)
            )

    def change(self, number: int) -> None:
        if number % 4 == 1:
            name = f"streams-{number}"
            later = generation(2, *HANDING_OVER, group=name, at_ms=START_MS + 1)
            read(self.state, later, seen_ms=self.now_ms)

    def go(self, number: int) -> None:
        records = [(key, None) for key, _ in self._records(number)]
        read(self.state, *records, seen_ms=self.now_ms)
        self._look(number, None)

    def _look(self, number: int, ends: EndOffsets | None) -> None:
        topics = [f"topic-{number}", f"streams-{number}-counts-changelog", f"in-{number}"]
        for topic in topics:
            for partition in range(2):
                topic_id = number.to_bytes(16) if ends and topic == topics[0] else None
                self.state.apply_ends(TopicPartition(topic, partition), ends, topic_id)

    def _records(self, number: int) -> list[Record]:
        topic, topic_id = f"topic-{number}", number.to_bytes(16)
        made = (self._classic, self._streams, self._consumer, self._new_streams)[number % 4]
        group, records = made(number)
        commits = [
            commit(partition, 5, topic=topic, group=group, at_ms=START_MS, topic_id=topic_id)
            for partition in range(2)
        ]
        return [*commits, *records]

    def _classic(self, number: int) -> tuple[str, list[Record]]:
        name = f"classic-{number}"
        owned = (TopicPartition(f"topic-{number}", 0),)
        return name, [consumer_generation(1, {"c": owned}, group=name)]

    def _streams(self, number: int) -> tuple[str, list[Record]]:
        name = f"streams-{number}"
        return name, [generation(1, *WARMING, group=name, sources={f"in-{number}": 0})]

    def _consumer(self, number: int) -> tuple[str, list[Record]]:
        name = f"consumer-{number}"
        return name, consumer_group(name, f"topic-{number}", number.to_bytes(16), regex="t.*")

    def _new_streams(self, number: int) -> tuple[str, list[Record]]:
        name = f"streams-{number}"
        configs = {"num.standby.replicas": "1"}
        changelog = f"{name}-counts-changelog"
        return name, streams_group(name, f"topic-{number}", changelog, configs=configs)


def test_hundreds_of_groups_that_go_leave_nothing_behind() -> None:
    cluster = Cluster()
    stay = range(GROUPS, GROUPS + 4)
    for number in stay:
        cluster.come(number)
    for _ in range(3):
        cluster.turn()
    before = cluster.sizes()
    places = []
    for _ in range(2):
        for number in range(GROUPS):
            cluster.come(number)
        cluster.turn()
        for number in range(GROUPS):
            cluster.change(number)
        cluster.turn()
        assert len(cluster.state.group_names()) == GROUPS + 4
        assert len(cluster.state.watches) == (GROUPS + 4) // 2
        assert not cluster.state.faults.totals
        grown = cluster.sizes()
        assert sum(grown.values()) > 50 * sum(before.values())
        for number in range(GROUPS):
            cluster.go(number)
        cluster.turn()
        cluster.now_ms += GRACE_MS
        cluster.turn()
        left = {path: n for path, n in cluster.sizes().items() if before.get(path, 0) < n}
        assert [path for path in left if not path.startswith((*PLACES, IDS))] == []
        assert left.get(f"{IDS}._ids", 0) <= 2 * len(cluster.state.commits) + 64
        places.append(cluster.state.commits.columns.used)
        places.append(sum(n for path, n in left.items() if path.startswith(PLACES)))
    assert places[2:] == places[:2]


def test_a_group_that_comes_and_goes_within_a_poll_leaves_nothing_behind() -> None:
    cluster = Cluster()
    cluster.turn()  # what is made at the first scrape stays
    before = cluster.sizes()
    for number in range(4):
        records = cluster._records(number)
        read(cluster.state, *records, *[(key, None) for key, _ in records])
    cluster.turn()
    assert cluster.sizes() == before


def test_expressions_that_come_before_their_group_are_kept_and_go_with_it() -> None:
    state = cluster_state()
    expression, *others = Cluster()._consumer(2)[1]
    read(state, expression)
    for record in others:
        read(state, record)
    assert state.groups.consumer["consumer-2"].regular_expressions == {"t.*": ("topic-2",)}
    # A broker up to 4.0 writes no tombstone for them.
    read(state, *[(key, None) for key, _ in others])
    assert state.groups.consumer == {}
    assert ConsumerGroup().is_empty()
