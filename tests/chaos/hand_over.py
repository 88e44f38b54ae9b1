"""What a reader of committed records has of decisions and movements, after an instance was replaced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.chaos.once import MOVEMENTS, RECOMMENDATIONS, Once
from tests.support.groups.emulated import Generation
from tests.support.kafka.topics import whole_topic
from tests.support.service import Service

Decision = tuple[str, int]
#: The events after which a movement is under way or done.
_GOES_ON = ("planned", "warming", "promoted")


class Told(NamedTuple):
    """The records of some groups: decisions and events of movements, in the order of their logs.

    ``at``: when a generation's decision was written (s since the epoch, by the service's clock).
    """

    decisions: list[dict[str, Any]]
    events: list[dict[str, Any]]
    at: dict[Decision, float]

    @classmethod
    def of(cls, cluster: EmbeddedCluster, service: Service, groups: frozenset[str]) -> Told:
        """Read the topics of a service to their ends."""
        found: dict[str, list[dict[str, Any]]] = {RECOMMENDATIONS: [], MOVEMENTS: []}
        at: dict[Decision, float] = {}
        for topic, records in found.items():
            for message in whole_topic(cluster, service.topic(topic)):
                record = json.loads(message.value() or b"{}")
                if record.get("group") not in groups:
                    continue
                records.append(record)
                if topic == RECOMMENDATIONS:
                    key = record["group"], record["generation"]
                    at.setdefault(key, message.timestamp()[1] / 1000)
        return cls(*found.values(), at)

    @property
    def decided(self) -> dict[str, int]:
        """The newest generation of each group that was decided."""
        return dict(sorted(self.at))

    def wrong(self, groups: frozenset[str]) -> list[str]:
        """Return what was told twice, what contradicts what was told before, and what is missing."""
        once = Once(groups)
        found = [
            once.add(topic, record)
            for topic, records in ((RECOMMENDATIONS, self.decisions), (MOVEMENTS, self.events))
            for record in records
        ]
        return [*(one for one in found if one is not None), *self.contradictions()]

    def contradictions(self) -> list[str]:
        """Return what contradicts what was told before, and movements that no event tells of."""
        return [*self._late(), *self._torn()]

    def _late(self) -> Iterable[str]:
        """Yield decisions about generations that were over by an earlier decision's word."""
        newest: dict[str, int] = {}
        for one in self.decisions:
            group, number = one["group"], one["generation"]
            if number < newest.get(group, 0):
                yield f"{group}: generation {number} is decided after {newest[group]}"
            newest[group] = max(number, newest.get(group, 0))

    def _torn(self) -> Iterable[str]:
        """Yield the movements of decisions that were not told, though the decisions were."""
        for one in self.decisions:
            group, number = one["group"], one["generation"]
            last = {
                (event["task"], event["to"]): event["event"]
                for event in self.events
                if event["group"] == group
                and event["generation"] <= number
                and event.get("plan") == "recommended"
            }
            for movement in one["movements"]:
                if last.get((movement["task"], movement["to"])) not in _GOES_ON:
                    task, to = movement["task"], movement["to"]
                    yield f"{group}: generation {number} moves {task} to {to}: no event says so"


def lived(
    began: Iterable[Generation], ends: Mapping[Decision, float], seconds: float, now: float
) -> set[Decision]:
    """Return the generations that lived for longer than so many seconds, or do."""
    return {
        key for one in began if ends.get(key := (one.group, one.number), now) - one.began > seconds
    }


def silences(
    told: Told, began: Iterable[Generation], ends: Mapping[Decision, float], fault: float
) -> dict[str, float]:
    """Return for how long each group that had something to hear heard nothing (s).

    From the fault, or the beginning of the first generation after it, up to the first decision.
    """
    found: dict[str, float] = {}
    since: dict[str, float] = {}
    for one in began:
        key = one.group, one.number
        if told.at.get(key, fault + 1) < fault or ends.get(key, fault + 1) < fault:
            continue
        since.setdefault(one.group, max(fault, one.began))
        if one.group not in found and key in told.at:
            found[one.group] = max(0.0, told.at[key] - since[one.group])
    return found
