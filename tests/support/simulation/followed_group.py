"""An application that follows the service's recommendations, generation by generation.

Its leader decides as the follower does. The service reads its generations in bytes and its leader's
reports, and publishes recommendations. Between rebalances copies are restored and changelogs grow.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.assignors.following.follower import FollowerDecision, follow
from caughtup.models.assignors.following.recommendation import Objection, read_followed
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.tasks.positions import TaskPosition
from tests.support.groups.records import GROUP, SOURCE, START_MS
from tests.support.groups.streams import CHANGELOG, RUNNING, Member, generation, process
from tests.support.own_topics.application_states import read_state_record, tell
from tests.support.states import cluster_state, publish, read

#: In offsets: the least size of a state, and acceptable.recovery.lag.
LEAST_STATE, LIMIT = 5_000, 300
SECOND = 1_000


@dataclass
class Process:
    """A process's active and standby tasks, and its states' offsets."""

    active: set[str] = field(default_factory=set)
    standby: set[str] = field(default_factory=set)
    restored: dict[str, int] = field(default_factory=dict)


class FollowedGroup:
    """Processes of one thread each; tasks and standbys are assigned in turn.

    ``begun`` are the copies that were begun without state, as process and task; ``records`` is what
    the service published. ``seed`` determines the growth of changelogs and the rates of restoring.
    """

    def __init__(self, seed: int, tasks: int, processes: int, config: Mapping[str, int]) -> None:
        self._rng = random.Random(seed)
        self._config = {**DEFAULTS, "acceptable.recovery.lag": LIMIT, **config}
        self.processes = {number: Process() for number in range(1, processes + 1)}
        self._ends: dict[str, int] = {}
        for place in range(tasks):
            task = f"0_{place}"
            self._ends[task] = LEAST_STATE + self._rng.randrange(5)
            for copy in range(1 + self._config["num.standby.replicas"]):
                holder = self.processes[(place + copy) % processes + 1]
                (holder.standby if copy else holder.active).add(task)
                holder.restored[task] = self._ends[task]
        self._growth = {task: self._rng.uniform(0, 20) for task in self._ends}
        told = ApplicationParameters(config=self._config, changelogs={0: (CHANGELOG,)})
        self._service = cluster_state(told)
        self._number, self._now_ms = 0, START_MS
        self.records: list[dict[str, Any]] = []
        self.begun: list[tuple[int, str]] = []

    def add(self) -> None:
        """Add a process without state."""
        self.processes[len(self.processes) + 1] = Process()

    def settle(self) -> None:
        """Rebalance until no further rebalance is requested."""
        for _ in range(200):
            decision = self._decide()
            held_back = self._assign(decision)
            if held_back:
                # The next rebalance comes at once, mostly before the service could decide.
                if self._rng.random() < 0.3:
                    self._publish()
                self._now_ms += 2 * SECOND
                continue
            self._publish()
            if decision.follow_up_ms is None:
                return
            for _ in range(max(1, decision.follow_up_ms // (5 * SECOND))):
                self._pass(5)
                self._publish()
        raise AssertionError("200 rebalances, and still another one is wanted")

    def _decide(self) -> FollowerDecision:
        """Decide as the leader does from the recommendation it has read, and publish its state."""
        self._number += 1
        state = self._state()
        scenario = read_state_record(state, self._now_ms).scenario.expanded()
        newest = Objection("no_recommendation", "there is none")
        decision = follow(
            scenario, read_followed(self.records[-1], GROUP) if self.records else newest
        )
        state["outcome"] |= {
            "reason": decision.reason,
            "assignment": {
                str(one): {
                    "active": [str(task) for task in decision.active[one]],
                    "standby": [str(task) for task in decision.standby[one]],
                }
                for one in decision.active
            },
            "follow_up_ms": decision.follow_up_ms,
        }
        if decision.decision_id is not None:
            state["outcome"]["followed"] = decision.decision_id
        tell(self._service, state, self._now_ms)
        return decision

    def _state(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "group": GROUP,
            "state_id": str(self._number),
            "published_at_ms": self._now_ms,
            "config": self._config,
            "tasks": {
                task: {
                    "stateful": True,
                    "source_partitions": [[SOURCE, int(task[2:])]],
                    "changelog_partitions": [[CHANGELOG, int(task[2:])]],
                }
                for task in self._ends
            },
            "clients": {
                str(process(number)): {
                    "capacity": 1,
                    "client_ids": [str(number)],
                    "tags": {},
                    "previous_active": sorted(one.active),
                    "previous_standby": sorted(one.standby),
                    "lags": {
                        task: RUNNING if task in one.active else self._ends[task] - restored
                        for task, restored in one.restored.items()
                    },
                }
                for number, one in self.processes.items()
            },
            "greatest_lags": self._ends,
            "outcome": {"reason": "undecided"},
        }

    def _assign(self, decision: FollowerDecision) -> bool:
        """Apply a decision; return whether a task waits until its owner revokes it."""
        members = []
        owners = {task: one for one in self.processes.values() for task in one.active}
        is_held_back = False
        for number, one in self.processes.items():
            wanted = {str(task) for task in decision.active[process(number)]}
            active = {task for task in wanted if owners.get(task, one) is one}
            standby = {str(task) for task in decision.standby[process(number)]}
            standby |= (wanted - active) & one.standby
            is_held_back |= active != wanted
            sums = {
                task: RUNNING if task in one.active else restored
                for task, restored in one.restored.items()
                if restored
            }
            members.append(
                (
                    one,
                    Member(
                        str(number),
                        number,
                        owned=tuple(sorted(one.active)),
                        sums=sums,
                        active=tuple(sorted(active)),
                        standby=tuple(sorted(standby)),
                        probe_at_ms=0 if active != wanted else None,
                    ),
                )
            )
        for (one, member), number in zip(members, self.processes, strict=True):
            one.active, one.standby = set(member.active), set(member.standby)
            for task in sorted(one.active | one.standby):
                if task not in one.restored:
                    self.begun.append((number, task))
                    one.restored[task] = 0
                if task in one.active:
                    one.restored[task] = self._ends[task]
        record = generation(self._number, *(member for _, member in members), at_ms=self._now_ms)
        read(self._service, record, seen_ms=self._now_ms)
        return is_held_back

    def _pass(self, seconds: int) -> None:
        """Advance time: changelogs grow, copies are restored, and some processes report."""
        self._now_ms += seconds * SECOND
        for task, growth in self._growth.items():
            self._ends[task] += round(growth * seconds * self._rng.uniform(0.5, 1.5))
        for number, one in self.processes.items():
            one.restored |= {task: self._ends[task] for task in one.active}
            behind = [task for task in one.standby if one.restored[task] < self._ends[task]]
            for task in sorted(behind):
                share = round(seconds * self._rng.uniform(500, 1_500) / len(behind))
                one.restored[task] = min(one.restored[task] + share, self._ends[task])
                if self._rng.random() < 0.8:
                    lag = self._ends[task] - one.restored[task]
                    copy = CopyKey(str(process(number)), TaskId.parse(task))
                    said = TaskPosition("standby", lag, {}, self._now_ms)
                    self._service.positions.apply(GROUP, copy, said)

    def _publish(self) -> None:
        self.records += publish(self._service, self._now_ms + SECOND)
