"""Time our decisions on consumer groups, and those of the clients' and the coordinator's assignors."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.bench.assign.pairs import Timing, figure, pairs_table
from caughtup.models.assignors.consumer.assign_line import (
    CONSUMER_ASSIGNORS,
    consumer_group_json,
    parse_consumer_group,
)
from caughtup.models.assignors.consumer.group import Assignment

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedConsumerAssignor

#: What ``bench assign`` calls all these assignors together.
CONSUMER_GROUPS = "consumer_groups"
_RACKS = ("a", "b", "c")
_ROUNDS = ("starts", "gets a member", "loses a member")
#: Kafka's sticky assignors take seconds for a group with mixed subscriptions: once is enough.
_SLOW = ("sticky", "cooperative_sticky")


class ConsumerGroupSize(NamedTuple):
    """A consumer group's size; ``partitions`` of each topic."""

    members: int
    topics: int
    partitions: int

    def __str__(self) -> str:
        return "x".join(map(str, self))


SIZE = ConsumerGroupSize(1_000, 20, 500)


def measure_consumers(
    repeats: int, warm_up_seconds: float, size: ConsumerGroupSize | None = None
) -> Iterator[dict[str, object]]:
    """Measure both on a group that starts, gets a member, and loses one.

    Each assignor has members that all read the same topics and members that read some, without racks
    and with a rack for each member and two for each partition. Only decisions are timed. ``same``:
    whether all repeats were equal to the jar's. Raises CaughtupError when the jar cannot be run.
    """
    from caughtup.demo.apps.published_assignor import PublishedConsumerAssignor

    size = size or SIZE
    groups = [
        (assignor, mixed, by_rack)
        for assignor in CONSUMER_ASSIGNORS
        for mixed in (False, True)
        for by_rack in (False, True)
    ]
    with (
        PublishedConsumerAssignor() as published,
        Progress().task("Deciding", len(groups) * len(_ROUNDS)) as advance,
    ):
        for assignor, mixed, by_rack in groups:
            line = _line(assignor, size, mixed=mixed, by_rack=by_rack)
            slow = mixed and assignor in _SLOW
            for number, name in enumerate(_ROUNDS, 1):
                published.load(line)
                if not slow:
                    _warm_up(published, warm_up_seconds)
                ours, theirs, same = [], [], True
                for _ in range(1 if slow else repeats):
                    timing, decision = _decide_timed(line)
                    answer = published.decide()
                    ours.append(timing)
                    theirs.append(Timing(answer.milliseconds, answer.cpu_milliseconds))
                    same = same and consumer_group_json(decision) == answer.decision
                group = f"{'some' if mixed else 'the same'} topics{', racks' * by_rack}: {name}"
                yield figure(assignor, str(size), f"{assignor}, {group}", ours, theirs, same)
                _change(line, answer.decision["members"], number)
                advance(1)


def consumers_table(figures: Sequence[dict[str, object]]) -> Table:
    """Return the figures as a table."""
    return pairs_table(figures, "members × topics × partitions of each")


def _line(assignor: str, size: ConsumerGroupSize, *, mixed: bool, by_rack: bool) -> dict[str, Any]:
    rng = random.Random(1)
    topics: dict[str, dict[str, object]] = {}
    for number in range(size.topics):
        topic: dict[str, object] = {"partitions": size.partitions}
        if by_rack:
            topic["racks"] = [rng.sample(_RACKS, 2) for _ in range(size.partitions)]
        topics[f"topic-{number:02}"] = topic
    names = sorted(topics)
    members: dict[str, dict[str, object]] = {}
    for _ in range(size.members):
        read = rng.sample(names, rng.randint(min(3, size.topics), size.topics)) if mixed else names
        member: dict[str, object] = {"topics": sorted(read), "owned": []}
        if by_rack:
            member["rack"] = rng.choice(_RACKS)
        members[f"consumer-{rng.getrandbits(128):032x}"] = member
    return {"name": "bench", "assignor": assignor, "topics": topics, "members": members}


def _change(line: dict[str, Any], owned: dict[str, object], generation: int) -> None:
    """Carry a decision out, and let a member join; in the next round the first one leaves."""
    members = line["members"]
    for name, member in members.items():
        member.update(owned=owned[name], generation=generation)
    if generation == 1:
        members["consumer-another"] = {"topics": sorted(line["topics"]), "owned": []}
    else:
        del members[min(members)]


def _decide_timed(line: dict[str, Any]) -> tuple[Timing, Assignment]:
    assign, group = parse_consumer_group(line)
    gc.freeze()
    start, start_of_thread = time.perf_counter_ns(), time.thread_time_ns()
    decision = assign(group)
    end_of_thread, end = time.thread_time_ns(), time.perf_counter_ns()
    gc.unfreeze()
    return Timing((end - start) / 1e6, (end_of_thread - start_of_thread) / 1e6), decision


def _warm_up(published: PublishedConsumerAssignor, seconds: float) -> None:
    end = time.monotonic() + seconds
    for _ in range(2):
        published.decide()
    while time.monotonic() < end:
        published.decide()
