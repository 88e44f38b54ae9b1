"""Kafka Streams applications that go on from generation to generation, with a lie here and there.

Bytes that are damaged at random seldom get as far as a decision. These do: members that fit
together, changelogs whose ends are known, copies that restore; and numbers at the ends of what
they can be.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.polls.batch import Record
from tests.fuzz.service_topics import APPLY, Told
from tests.fuzz.values import OFFSETS, Values
from tests.support.damage import damaged
from tests.support.groups.streams import RUNNING, Member, generation, process

SUBTOPOLOGIES, PARTITIONS, MEMBERS = 2, 3, 3
TASKS = tuple(f"{s}_{p}" for s in range(SUBTOPOLOGIES) for p in range(PARTITIONS))
#: Of half of these it is told which changelogs they have; of the others it is inferred.
GROUPS = tuple(f"liar-{number}" for number in range(6))
TOLD_GROUPS = GROUPS[::2]


def sources(group: str) -> dict[str, int]:
    return {f"{group}-in-{number}": number for number in range(SUBTOPOLOGIES)}


def changelogs(group: str) -> list[str]:
    return [f"{group}-store-{number}-changelog" for number in range(SUBTOPOLOGIES)]


PARAMETERS = {
    group: ApplicationParameters(
        config=dict(DEFAULTS),
        changelogs={number: (topic,) for number, topic in enumerate(changelogs(group))},
    )
    for group in TOLD_GROUPS
}


@dataclass
class _Application:
    """What was last said of an application: who runs and follows what, and how far ends are."""

    number: int = 0
    active: dict[str, int] = field(default_factory=dict)
    standby: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


class Applications:
    """Makes their records: of ``__consumer_offsets``, and of the service's own topics."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._known = {group: _Application() for group in GROUPS}

    def records(self) -> list[Record]:
        """Make the next generation of some of them."""
        values = self._values
        return [self._generation(group) for group in GROUPS if values.chance(0.3)]

    def told(self) -> list[Told]:
        """Make looks at the ends of all their topics, and positions of some of their copies."""
        told = []
        for group, known in self._known.items():
            for topic in (*changelogs(group), *sources(group)):
                if self._values.chance(0.9):
                    told += [self._ends(known, topic, number) for number in range(PARTITIONS)]
            told += [self._position(group) for _ in self._values.several()]
            told += [self._rates(group) for _ in self._values.several(1)]
        return told

    def _generation(self, group: str) -> Record:
        values, known = self._values, self._known[group]
        random = values.random
        known.number += 1
        before, followed = known.active, known.standby
        processes = range(1, MEMBERS + 1)
        known.active = {task: random.choice(processes) for task in TASKS if values.chance(0.95)}
        known.standby = {task: random.choice(processes) for task in TASKS if values.chance(0.6)}
        if values.chance(0.5):  # most tasks stay where they are
            known.active |= before
        members = [
            Member(
                name=values.one_of("a", "b", "c") if values.chance(0.1) else "abc"[number - 1],
                process=number,
                owned=tuple(task for task, at in before.items() if at == number),
                sums=self._sums(known, number, before, followed),
                active=tuple(task for task, at in known.active.items() if at == number),
                standby=tuple(
                    task
                    for task, at in known.standby.items()
                    if at == number and known.active.get(task) != number
                ),
                probe_at_ms=values.one_of(None, 0, values.now_ms, max(0, values.time_ms())),
                error_code=values.one_of(1, -1) if values.chance(0.03) else 0,
                thread=values.one_of(1, 1, 2),
                tags={"zone": values.text()} if values.chance(0.1) else {},
            )
            for number in processes
            if values.chance(0.95)
        ]
        version = values.one_of(11, 11, 10, 8, 7)
        topics = sources(group)
        key, value = generation(
            known.number,
            *members,
            group=group,
            sources=topics,
            at_ms=values.now_ms - 50 if values.chance(0.97) else values.time_ms(),
            version=version,
        )
        if values.chance(0.03):
            return key, None
        if value is not None and values.chance(0.05):
            value = damaged(random, value)
        return key, value

    def _sums(
        self, known: _Application, number: int, before: dict[str, int], followed: dict[str, int]
    ) -> dict[str, int]:
        values, sums = self._values, {}
        for task in TASKS:
            if before.get(task) == number:
                sums[task] = RUNNING
            elif followed.get(task) == number or values.chance(0.1):
                end = max(0, known.ends.get(task, 1_000))
                sums[task] = values.random.randint(0, min(end, 1 << 62))
            if values.chance(0.08):
                sums[task] = values.random.choice(OFFSETS)
        return sums

    def _ends(self, known: _Application, topic: str, number: int) -> Told:
        values = self._values
        task = f"{topic.rpartition('-changelog')[0][-1:] or 0}_{number}"
        end = known.ends.get(task, 50_000) + values.random.randint(0, 500)
        if end > 1 << 60:
            end = 50_000
        if values.chance(0.01):
            end = values.random.choice(OFFSETS)
        known.ends[task] = end
        record = {
            "schema": 1,
            "topic": topic,
            "partition": number,
            "start_offset": 0,
            "last_stable_offset": end,
            "end_offset": end,
            "as_of_ms": values.now_ms if values.chance(0.98) else values.time_ms(),
        }
        return _told("end-offsets", f"{topic}-{number}".encode(), record)

    def _position(self, group: str) -> Told:
        values = self._values
        lag: Any = values.random.randint(0, 60_000)
        if values.chance(0.05):
            lag = values.random.choice(OFFSETS)
        record = {
            "schema": 1,
            "role": values.one_of("active", "standby", "warmup", None),
            "lag": lag,
            "at_ms": values.now_ms,
        }
        return _told("task-positions", self._copy(group), record)

    def _rates(self, group: str) -> Told:
        values = self._values
        windows = [
            {
                "seconds": seconds,
                "position_per_second": values.one_of(None, 0, -5.5, 1_000.0, 1e300, 1e-300),
                "spread": values.one_of(None, 0, 0.5, 1e300),
                "samples": values.one_of(0, 6, 1 << 40),
            }
            for seconds in (60, 300, 900)
        ]
        record = {
            "schema": 1,
            "as_of_ms": values.now_ms,
            "trigger_seconds": values.one_of(10, 0, 1e9),
            "windows": windows,
        }
        return _told("catch-up-rates", self._copy(group), record)

    def _copy(self, group: str) -> bytes:
        number = self._values.random.randint(1, MEMBERS)
        task = self._values.random.choice(TASKS)
        return json.dumps([group, str(process(number)), task]).encode()


def _told(topic: str, key: bytes, record: dict[str, Any]) -> Told:
    return Told(topic, key, json.dumps(record).encode(), APPLY[topic])
