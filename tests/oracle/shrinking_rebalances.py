"""Make a rebalance that fails as small as it can be and still fail."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]

#: A rebalance is tried in some milliseconds, so that this many take a minute at most.
MOST_TRIALS = 2_000


def shrink_rebalance(rebalance: Json, fails: Callable[[Json], bool]) -> Json:
    """Shrink a failing rebalance until it fails only with all that is left.

    Subtopologies go from the last, because they are numbered without a gap; then members,
    partitions, what members own and report, new topics, standbys and the like, one by one.
    """
    least, trials = rebalance, MOST_TRIALS
    smaller = True
    while smaller:
        smaller = False
        for change in _changes(least):
            candidate = copy.deepcopy(least)
            change(candidate)
            if candidate == least:
                continue
            if not trials:
                return least
            trials -= 1
            if fails(candidate):
                least, smaller = candidate, True
    return least


def _changes(rebalance: Json) -> Iterator[Callable[[Json], object]]:
    """Yield steps to something smaller; one that has become pointless changes nothing."""
    for number in reversed(rebalance["subtopologies"]):
        yield lambda one, number=number: _drop_subtopology(one, number)
    for topic in rebalance["partitions"]:
        for count in (1, 2, rebalance["partitions"][topic] - 1):
            yield lambda one, topic=topic, count=count: _narrow(one, topic, count)
    for name in rebalance["members"]:
        if len(rebalance["members"]) > 1:
            yield (
                lambda one, name=name: one["members"].pop(name) if len(one["members"]) > 1 else None
            )
    for name, member in rebalance["members"].items():
        yield lambda one, name=name: one["members"].get(name, {}).update(owned=[])
        yield lambda one, name=name: one["members"].get(name, {}).update(offset_sums={})
        yield lambda one, name=name: one["members"].get(name, {}).update(end_point="")
        yield lambda one, name=name: one["members"].get(name, {}).update(tags={}, rack=None)
        yield lambda one, name=name: one["members"].get(name, {}).update(version=11)
        for pair in member["owned"]:
            yield lambda one, name=name, pair=pair: _remove(one["members"], name, pair)
        for task in member["offset_sums"]:
            yield (
                lambda one, name=name, task=task: (
                    one["members"].get(name, {}).get("offset_sums", {}).pop(task, None)
                )
            )
            yield lambda one, name=name, task=task: _simplify_sum(one["members"], name, task)
    for topic in rebalance["new_topics"]:
        yield lambda one, topic=topic: one.update(
            new_topics=[other for other in one["new_topics"] if other != topic]
        )
    for name, value in _PLAIN_CONFIGS.items():
        yield lambda one, name=name, value=value: one["config"].update({name: value})
    for what in ("end_offsets", "committed"):
        yield lambda one, what=what: one.update(
            {what: dict.fromkeys(one[what], 0) if one[what] else one[what]}
        )


_PLAIN_CONFIGS = {
    "acceptable.recovery.lag": 0,
    "max.warmup.replicas": 1,
    "num.standby.replicas": 0,
    "rack.aware.assignment.tags": [],
    "rack.aware.assignment.strategy": "none",
    "rack.aware.assignment.traffic_cost": None,
    "rack.aware.assignment.non_overlap_cost": None,
}


def _remove(members: Json, name: str, pair: list[Any]) -> None:
    if name in members and pair in members[name]["owned"]:
        members[name]["owned"].remove(pair)


def _simplify_sum(members: Json, name: str, task: str) -> None:
    if members.get(name, {}).get("offset_sums", {}).get(task, 0) > 0:
        members[name]["offset_sums"][task] = 0


def _drop_subtopology(one: Json, number: str) -> None:
    if number in one["subtopologies"] and len(one["subtopologies"]) > 1:
        highest = max(one["subtopologies"], key=int)
        gone = one["subtopologies"].pop(number)
        if highest != number:
            one["subtopologies"][number] = one["subtopologies"].pop(highest)
        for kind in gone.values():
            for topic in kind:
                one["partitions"].pop(topic, None)
                if topic in one["new_topics"]:
                    one["new_topics"].remove(topic)


def _narrow(one: Json, topic: str, count: int) -> None:
    """Remove partitions of a topic, and those of its subtopology's changelogs that no task has."""
    if not 0 < count < one["partitions"].get(topic, 0):
        return
    one["partitions"][topic] = count
    for topics in one["subtopologies"].values():
        sources = [*topics["sources"], *topics["repartition_sources"]]
        widest = max(one["partitions"][source] for source in sources)
        for changelog in topics["changelogs"]:
            one["partitions"][changelog] = widest
