"""Rounds of Connect groups made from a seed: workers and connectors come, change and go.

What workers own follows from what they were told, by our own rules; where these were wrong, the
story would be one that no group has, and be decided all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from caughtup.models.connect.assign_line import EAGER, INCREMENTAL
from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import (
    NO_MEMORY,
    ConnectDecision,
    Round,
    on_the_wire,
    owned_after,
)
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

Json = dict[str, Any]
#: Rounds of each story.
ROUNDS = 14

_DELAYS_MS = (300_000, 300_000, 60_000, 1_000, 0, 1, 39, 40, 41, (1 << 31) - 1)
_WORKERS = (
    lambda rng, n: f"W{n}",
    lambda rng, n: f"connect-10.0.{n}.{n}:8083-{rng.getrandbits(128):032x}",
    # Strings of the same hash code, of which a bucket gets crowded.
    lambda rng, n: "".join(("Aa", "BB")[n >> bit & 1] for bit in range(6)),
    lambda rng, n: f"{rng.choice(('é', '字', chr(0x1F600), '￿', 'w'))}{n}",
)
_CONNECTORS = (
    lambda rng, n: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 26] * (1 + n // 26),
    lambda rng, n: f"{rng.choice(('orders', 'users', 'jdbc source', 'S3'))}-sink-{n}x",
    lambda rng, n: "".join(("Aa", "BB")[n >> bit & 1] for bit in range(6)),
    lambda rng, n: f"{rng.choice(('é', '字', chr(0x1F600), '￿', '%/'))}{n}",
)


class _Group:
    """A group as it goes on, with what its workers have and its leader remembers."""

    def __init__(self, rng: random.Random, largest: int) -> None:
        self.rng = rng
        self.largest = largest
        drawn_ms = rng.randint(2, 1_200), rng.randint(2, 1_000) * 1_000
        self.max_delay_ms = rng.choice((*_DELAYS_MS, *drawn_ms))
        self.name_worker = rng.choice(_WORKERS)
        self.name_connector = rng.choice(_CONNECTORS)
        self.made = [0, 0]
        self.time_ms = rng.choice((0, 1_700_000_000_000))
        self.connectors: dict[str, int] = {}
        self.workers: dict[str, ConnectorsAndTasks] = {}
        self.away: list[str] = []
        self.leader = ""
        self.memory = NO_MEMORY
        self.decision: ConnectDecision | None = None
        self.synced = True
        for _ in range(rng.choice((1, 1, 2, 3, largest))):
            self.join()
        for _ in range(rng.choice((0, 1, 2, 3, largest))):
            self.add_connector()

    def join(self) -> None:
        """A worker joins: mostly one that was away, by its old name or a new one."""
        if self.away and self.rng.random() < 0.6:
            name = self.away.pop(self.rng.randrange(len(self.away)))
        else:
            name = self.name_worker(self.rng, self.made[0])
            self.made[0] += 1
        self.workers.setdefault(name, NOTHING)

    def leave(self) -> None:
        """A worker leaves, one time in five the leader."""
        if len(self.workers) < 2:
            return
        others = [name for name in self.workers if name != self.leader] or [self.leader]
        name = self.leader if self.rng.random() < 0.2 else self.rng.choice(others)
        self.workers.pop(name, None)
        self.away.append(name)

    def add_connector(self) -> None:
        name = self.name_connector(self.rng, self.made[1])
        self.made[1] += 1
        self.connectors[name] = self.rng.choice((0, 1, 1, 2, 3, 5, self.largest))

    def delete_connector(self) -> None:
        if self.connectors:
            del self.connectors[self.rng.choice(list(self.connectors))]

    def scale_connector(self) -> None:
        if self.connectors:
            name = self.rng.choice(list(self.connectors))
            self.connectors[name] = self.rng.choice((0, 1, 2, 4, self.largest))

    def wait(self) -> None:
        """Time goes by: none, a bit, up to a millisecond before or after a delay, or beyond it."""
        left_ms = max(self.memory.scheduled_rebalance_ms - self.time_ms, 0)
        ends = (left_ms, left_ms, left_ms - 1, left_ms + 1, left_ms // 3, self.max_delay_ms)
        self.time_ms += max(0, self.rng.choice((0, 1, 50, 5_000, *ends, *ends)))

    def begin(self) -> Json:
        """Write the round that begins now, and decide it."""
        names = list(self.workers)
        if self.rng.random() < 0.3:
            self.rng.shuffle(names)
        self.workers = {name: self.workers[name] for name in names}
        if self.leader not in self.workers:
            self.leader, self.memory = self.rng.choice(names), NO_MEMORY
        round_ = Round(self.time_ms, dict(self.connectors), dict(self.workers), self.synced)
        one: Json = {
            "time_ms": self.time_ms,
            "leader": self.leader,
            "connectors": dict(self.connectors),
            "workers": {
                name: {"owned": [*owned.connectors, *map(str, owned.tasks)]}
                for name, owned in self.workers.items()
            },
        }
        if not self.synced:
            one["previous_generation_failed"] = True
        self.decision, self.memory = decide_incremental(round_, self.memory, self.max_delay_ms)
        self.synced = True
        return one

    def sync(self, missing: float = 0.0) -> None:
        """Workers do as they are told, but for those that don't get to know."""
        assert self.decision is not None
        for name, told in self.decision.workers.items():
            if self.rng.random() >= missing:
                self.workers[name] = owned_after(self.workers[name], told)

    def spoil(self) -> None:
        """A worker gives everything up, runs what it shouldn't, or in another order."""
        name = self.rng.choice(list(self.workers))
        others = [one for owned in self.workers.values() for one in owned.tasks]
        match self.rng.randrange(5):
            case 0:
                self.workers[name] = NOTHING
            case 1:
                taken = self.workers[self.rng.choice(list(self.workers))]
                own = self.workers[name]
                both = ConnectorsAndTasks(
                    tuple(dict.fromkeys(own.connectors + taken.connectors)),
                    tuple(dict.fromkeys(own.tasks + taken.tasks)),
                )
                self.workers[name] = on_the_wire(both)
            case 2 if others:
                self.workers[name] = ConnectorsAndTasks((), tuple(self.rng.sample(others, 1)))
            case 3:
                self.workers[name] = ConnectorsAndTasks(("gone",), (ConnectorTaskId("gone", 3),))
            case _:
                own = self.workers[name]
                self.workers[name] = ConnectorsAndTasks(own.connectors[::-1], own.tasks[::-1])


def generate_story(seed: int) -> Json:
    """Make a story in which workers and connectors come, change and go; the same for a seed."""
    return _story("connect", seed, largest=6)


def generate_faulty_story(seed: int) -> Json:
    """Make a story in which generations fail, and workers run what they shouldn't."""
    return _story("faulty connect", seed, largest=5, faults=0.4)


def generate_large_story(seed: int) -> Json:
    """Make a story of dozens of workers and connectors."""
    return _story("large connect", seed, largest=40, faults=0.1)


def generate_eager_story(seed: int) -> Json:
    """Make a story of a group whose protocol is eager."""
    story = _story("eager connect", seed, largest=7)
    return {**story, "assignor": EAGER}


def _story(kind: str, seed: int, largest: int, faults: float = 0.0) -> Json:
    rng = random.Random(f"{kind} {seed}")
    group = _Group(rng, largest)
    events: tuple[Callable[[], None], ...] = (
        *(group.join, group.join, group.leave, group.leave),
        *(group.add_connector, group.delete_connector, group.scale_connector),
    )
    if rng.random() < 0.2:
        # A group that grows: it takes work away again and again.
        events = (group.join,)
    rounds = []
    generation = rng.choice((1, 1, 70))
    while len(rounds) < ROUNDS:
        rounds.append({**group.begin(), "generation": generation})
        generation += 1
        if rng.random() < faults:
            group.synced = rng.random() < 0.4
            group.sync(missing=rng.choice((0.3, 1.0)) if group.synced else 1.0)
            if rng.random() < 0.5:
                group.spoil()
        else:
            group.sync()
        group.wait()
        for event in rng.choices(events, k=rng.choice((0, 0, 1, 1, 1, 2, 3))):
            event()
    return {
        "name": f"{kind} seed {seed}",
        "assignor": INCREMENTAL,
        "config": {"scheduled.rebalance.max.delay.ms": group.max_delay_ms},
        "rounds": rounds,
    }
