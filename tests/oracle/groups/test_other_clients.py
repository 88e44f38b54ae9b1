"""Groups of consumers, round by round, by the assignors of librdkafka and aiokafka and by ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from caughtup.models.assignors.consumer.aiokafka_sticky import assign_aiokafka_sticky
from caughtup.models.assignors.consumer.assign_line import parse_consumer_group
from caughtup.models.assignors.consumer.choices import Choices, EveryChoice
from caughtup.models.assignors.consumer.group import Assignment, ConsumerGroupSpec
from caughtup.models.assignors.consumer.librdkafka_sticky import assign_librdkafka_sticky
from caughtup.models.assignors.consumer.ranges import assign_librdkafka_range
from caughtup.models.assignors.consumer.round_robin import assign_librdkafka_round_robin
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.generated.consumer_groups import ConsumerGroupStory
from tests.support.groups.librdkafka_leaders import LibrdkafkaLeaders
from tests.support.oracles import Oracle

Json = dict[str, Any]
Assign = Callable[[ConsumerGroupSpec, Choices], Assignment]
LIBRDKAFKA: dict[str, Assign] = {
    "range": lambda group, _: assign_librdkafka_range(group),
    "roundrobin": lambda group, _: assign_librdkafka_round_robin(group),
    "cooperative-sticky": assign_librdkafka_sticky,
}
_MOST_CHOICES, _SECONDS, _AT_ONCE = 2_000, 60, 20


def asked(story: ConsumerGroupStory, line: Json) -> ConsumerGroupSpec:
    """Return a round's group with its members as they joined, each as its client writes it.

    librdkafka's have an empty rack where Java's have none.
    """
    group = parse_consumer_group(line)[1]
    members = {
        name: replace(group.members[name], rack=group.members[name].rack or written)
        for name, written in ((name, "" if len(name) % 3 else None) for name in line["members"])
        if group.members[name].topics
    }
    return ConsumerGroupSpec(members, group.topics, group.racks)


def how_it_is_explained(assign: Assign, group: ConsumerGroupSpec, theirs: Assignment) -> str:
    """Return by which choices our decision is theirs."""
    wanted = {name: set(own) for name, own in theirs.items()}
    tried = EveryChoice(_MOST_CHOICES)
    for choices in tried:
        if {name: set(own) for name, own in assign(group, choices).items()} == wanted:
            return "the expected choices" if choices.expected else "other choices"
    return "no choices" if tried.complete else "not found among many choices"


def story_of(
    seed: int, assignor: str, assign: Assign, found: Counter[str]
) -> Generator[ConsumerGroupSpec, Assignment]:
    """Yield each round's group, and compare what is sent back; end where theirs fails."""
    story = ConsumerGroupStory(seed, assignor)
    for line in story.rounds():
        group = asked(story, line)
        if not any(group.topics.get(one) for each in group.members.values() for one in each.topics):
            return
        try:
            assign(group, Choices())
        except CaughtupError as error:
            found[error.code] += 1
            return
        theirs = yield group
        how = how_it_is_explained(assign, group, theirs)
        found[how] += 1
        assert how != "no choices", f"seed {seed}, {line['name']}: {group}"
        story.decided({name: sorted(map(list, theirs.get(name, ()))) for name in line["members"]})


@pytest.mark.parametrize("assignor", LIBRDKAFKA)
@pytest.mark.family("consumer groups: librdkafka's assignors, 5 rounds each")
@seeds_of_a_family(one_of=2)
def test_partitions_are_assigned_as_by_librdkafka(
    assignor: str, seeds: range, tally: Callable[[int], None]
) -> None:
    found: Counter[str] = Counter()
    name = assignor.replace("-", "_")
    stories = iter([story_of(seed, name, LIBRDKAFKA[assignor], found) for seed in seeds])
    with LibrdkafkaLeaders(_AT_ONCE, assignor) as leaders:
        running: dict[int, tuple[Any, Any]] = {}

        def begin(number: int) -> None:
            running.pop(number, None)
            for story in stories:
                if (group := next(story, None)) is not None:
                    running[number] = story, leaders.ask(number, group)
                    return

        for number in range(_AT_ONCE):
            begin(number)
        while running:
            for number, (story, decided) in list(running.items()):
                given = decided.result(_SECONDS)
                try:
                    running[number] = story, leaders.ask(number, story.send(given))
                except StopIteration:
                    begin(number)
    print(assignor, dict(found))
    assert found["the expected choices"] > len(seeds)
    tally(len(seeds))


@pytest.mark.parametrize("hash_seed", ["0", "1"])
@pytest.mark.family("consumer groups: aiokafka's sticky assignor, 5 rounds each")
@seeds_of_a_family(one_of=2)
def test_partitions_are_assigned_as_by_aiokafkas_sticky_assignor(
    hash_seed: str, seeds: range, tally: Callable[[int], None]
) -> None:
    found: Counter[str] = Counter()
    command = [sys.executable, "-m", "tests.support.groups.aiokafka_assignor"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    ) as process:
        oracle = Oracle(process)
        for seed in seeds:
            story = story_of(seed, "sticky", _as_read, found)
            group = next(story, None)
            while group is not None:
                answer = oracle.ask(_line(group))
                given = {
                    name: [TopicPartition(*one) for one in own] for name, own in answer.items()
                }
                try:
                    group = story.send(given)
                except StopIteration:
                    group = None
        assert process.stdin is not None
        process.stdin.close()
    print(dict(found))
    assert found["the expected choices"] > len(seeds)
    tally(len(seeds))


def _as_read(group: ConsumerGroupSpec, choices: Choices) -> Assignment:
    """Decide with members' partitions in the order in which user data have them: topic by topic."""
    members = {
        name: replace(member, owned=[one for own in _by_topic(member.owned) for one in own])
        for name, member in group.members.items()
    }
    return assign_aiokafka_sticky(replace(group, members=members), choices)


def _by_topic(owned: Any) -> list[list[TopicPartition]]:
    topics = list(dict.fromkeys(one.topic for one in owned))
    ordered = sorted(owned, key=lambda one: topics.index(one.topic))
    return [list(own) for _, own in groupby(ordered, key=lambda one: one.topic)]


def _line(group: ConsumerGroupSpec) -> Json:
    return {
        "topics": group.topics,
        "members": {
            name: {"topics": one.topics, "owned": one.owned, "generation": one.generation}
            for name, one in group.members.items()
        },
    }
