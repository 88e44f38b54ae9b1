"""Kafka Streams applications whose groups rebalance all the time, while a test does something else."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce_empty
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.groups.streams import RUNNING, Member, generation
from tests.support.kafka.streams_members import PlayedApplication, topics_of
from tests.support.kafka.topics import write_offsets

_BOTH = {"0_0": RUNNING, "0_1": RUNNING}
#: The end of each changelog: more than ``acceptable.recovery.lag``, so that a copy has to warm up.
_END = 10_500
#: An instance runs everything, another joins, warms up, takes over a task, and leaves again: as
#: Kafka's assignor decides. The third round asks for the next one at once.
_ROUNDS = (
    (Member("a", 1, ("0_0",), {"0_0": RUNNING, "0_1": _END}, ("0_0", "0_1")),),
    (Member("a", 1, ("0_0", "0_1"), _BOTH, ("0_0", "0_1")), Member("b", 2, standby=("0_1",))),
    (
        Member("a", 1, ("0_0", "0_1"), _BOTH, ("0_0",)),
        Member("b", 2, sums={"0_1": _END}, standby=("0_1",), probe_at_ms=0),
    ),
    (
        Member("a", 1, ("0_0",), {"0_0": RUNNING, "0_1": _END}, ("0_0",)),
        Member("b", 2, sums={"0_1": _END}, active=("0_1",)),
    ),
)
_WARMS_UP, _PROBING_MS = 1, 600_000
_SHORT_SECONDS = (0.4, 2.0)


#: Where the groups of ``Rebalancing`` are written. The coordinator of that partition finds an end that
#: it didn't write, and reads the log again: a group with members has to be elsewhere.
_EMULATED, _PARTITIONS = 0, 4


def name(prefix: str, *, emulated: bool = False) -> str:
    """Return a new name of a group that is kept where groups are emulated, or elsewhere."""
    while True:
        found = f"{prefix}-{uuid.uuid4().hex[:8]}"
        if (coordinator_partition(found, _PARTITIONS) == _EMULATED) == emulated:
            return found


def offsets_partitions(cluster: EmbeddedCluster) -> int:
    """Return the number of partitions of ``__consumer_offsets``."""
    admin = AdminClient(cluster.client_config())
    return len(admin.list_topics(CONSUMER_OFFSETS).topics[CONSUMER_OFFSETS].partitions)


def spread_name(number: int, partitions: int) -> str:
    """Return a new name of an emulated group; those of consecutive numbers are spread evenly.

    ``partitions``: the number of those of ``__consumer_offsets``, a multiple of the usual 4. With a group
    for each fourth of them, every instance that shares them has a group.
    """
    wanted = _EMULATED + _PARTITIONS * (number % (partitions // _PARTITIONS))
    while True:
        found = name("written", emulated=True)
        if coordinator_partition(found, partitions) == wanted:
            return found


class EmulatedApplication:
    """An application as its group's records tell of it: a test writes them itself."""

    def __init__(self, cluster: EmbeddedCluster, group: str | None = None) -> None:
        self.group = group or f"pair-{uuid.uuid4().hex[:8]}"
        self.generation = 0
        self._cluster = cluster
        self._partition = coordinator_partition(self.group, offsets_partitions(cluster))

    def rebalance(self, times: int = 1) -> None:
        """Swap the tasks of two members so many times."""
        for _ in range(times):
            tasks = ["0_0", "0_1"][:: -1 if self.generation % 2 else 1]
            self._write(*(Member(name, n, active=(tasks[n],)) for n, name in enumerate("ab")))

    def move_on(self) -> None:
        """Go one round further: an instance comes, warms up, takes over and goes."""
        number = self.generation % len(_ROUNDS)
        members = _ROUNDS[number]
        if number == _WARMS_UP:
            due_ms = int(time.time() * 1000) + _PROBING_MS
            members = (replace(members[0], probe_at_ms=due_ms), *members[1:])
        self._write(*members, source=topics_of(self.group)[0])

    def _write(self, *members: Member, source: str | None = None) -> None:
        self.generation += 1
        record = generation(
            self.generation,
            *members,
            group=self.group,
            sources=None if source is None else {source: 0},
            at_ms=int(time.time() * 1000),
        )
        write_offsets(self._cluster, self._partition, record)


class Generation(NamedTuple):
    """A generation of a group, and when it began (s since the epoch)."""

    group: str
    number: int
    began: float


@dataclass
class _Turn:
    """When a group rebalances next (s, monotonic), and in what pauses."""

    application: EmulatedApplication
    pauses: tuple[float, float]
    due: float


class Rebalancing(ClosedOnExit):
    """Groups that rebalance until it is closed: emulated ones, and one that joins at the brokers.

    Groups of the test's own are to be named by ``name``. ``brief``: so many rebalance once or twice
    a second; ``long``: so many whose generations live for the seconds ``lives``. ``began``: every
    generation, in the order in which they began.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        seed: int,
        *,
        brief: int = 2,
        long: int = 4,
        lives: tuple[float, float] = (14.0, 18.0),
    ) -> None:
        self.began: list[Generation] = []
        self._random = Random(seed)
        self._played = name("played")
        now = time.monotonic()
        partitions = offsets_partitions(cluster)
        pauses = [_SHORT_SECONDS] * brief + [lives] * long
        self._turns = [
            # Not all at the same time: one of the long ones every few seconds.
            _Turn(
                EmulatedApplication(cluster, spread_name(number, partitions)),
                each,
                now + number * lives[0] / len(pauses),
            )
            for number, each in enumerate(pauses)
        ]
        groups = [*(turn.application.group for turn in self._turns), self._played]
        create_topics(cluster, {topic: 2 for group in groups for topic in topics_of(group)})
        changelogs = [(topics_of(group)[1], number) for group in groups for number in (0, 1)]
        produce_empty(cluster, changelogs, _END)
        self.groups = frozenset(groups)
        self._servers, self._lives = cluster.bootstrap_servers, lives
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._emulate, lambda: asyncio.run(self._play()))
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the groups; those that were written stay as they are."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(30)

    def newest(self) -> dict[str, int]:
        """Return the newest generation of each group; 0 of one without any."""
        return dict.fromkeys(self.groups, 0) | {one.group: one.number for one in list(self.began)}

    def ends(self) -> dict[tuple[str, int], float]:
        """Return when each generation ended that has ended (s since the epoch)."""
        last: dict[str, Generation] = {}
        found = {}
        for one in list(self.began):
            if one.group in last:
                found[one.group, last[one.group].number] = one.began
            last[one.group] = one
        return found

    def _emulate(self) -> None:
        while not self._stop.wait(0.05):
            for turn in self._turns:
                if time.monotonic() < turn.due:
                    continue
                began = time.time()
                turn.application.move_on()
                self.began.append(
                    Generation(turn.application.group, turn.application.generation, began)
                )
                turn.due = time.monotonic() + self._random.uniform(*turn.pauses)

    async def _play(self) -> None:
        async with PlayedApplication(self._servers, self._played) as application:
            while not self._stop.is_set():
                began = time.time()
                number, _ = await application.rebalance([1, 1])
                self.began.append(Generation(self._played, number, began))
                await asyncio.to_thread(self._stop.wait, self._lives[0])
