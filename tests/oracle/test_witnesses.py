"""A witness decided by the published StreamsPartitionAssignor: every member gets what it was given."""

from __future__ import annotations

from caughtup.models.assignment.configs import NEWEST
from tests.models.learning.applications import GROUP
from tests.models.learning.playing import Step, steps
from tests.models.learning.test_witness import loaded
from tests.oracle.rebalance_parts import Json
from tests.support.oracles import Oracle

GROUPS = 12


def rebalance_of(step: Step) -> Json:
    """Return the rebalance of a generation with the inputs of its witness."""
    played, witness = step.played, step.verdict.witness
    assert witness is not None
    record, generation = witness.record(), played.generation
    tasks = played.inputs.scenario.tasks
    ends = {task: bound.high for task, bound in played.inputs.ends.items() if bound is not None}
    ends |= witness.ends
    by_id = {member.member_id: member for member in generation.members()}
    topics: dict[int, tuple[set[str], set[str]]] = {}
    for task, one in tasks.items():
        sources, changelogs = topics.setdefault(task.subtopology, (set(), set()))
        sources.update(partition.topic for partition in one.sources)
        changelogs.update(_renamed(partition.topic) for partition in one.changelogs)
    assert generation.leader is not None
    return {
        "name": f"{generation.group}/{generation.generation}",
        "assignor": record.assignor,
        "config": {**record.config, "probing.rebalance.interval.ms": 600_000},
        "now_ms": played.seen_ms,
        "leader": str(by_id[generation.leader].process),
        "subtopologies": {
            str(number): {"sources": sorted(sources), "changelogs": sorted(changelogs)}
            for number, (sources, changelogs) in sorted(topics.items())
        },
        "partitions": {
            topic: sum(task.subtopology == number for task in tasks)
            for number, (sources, changelogs) in topics.items()
            for topic in (*sources, *changelogs)
        },
        "new_topics": [],
        "replicas": {},
        "end_offsets": {
            f"{_renamed(one.changelogs[0].topic)}-{task.partition}": ends[task]
            for task, one in tasks.items()
            if one.changelogs
        },
        "committed": {},
        "members": {
            member_id: {
                "process": str(by_id[member_id].process),
                "owned": [[*partition] for partition in by_id[member_id].owned],
                "offset_sums": {str(t): s for t, s in by_id[member_id].offset_sums.items()},
                "tags": by_id[member_id].client_tags,
            }
            for member_id in generation.arrival
        },
    }


def _renamed(changelog: str) -> str:
    """Return a changelog's name in the application that the oracle plays."""
    return changelog.replace(f"{GROUP}-", "app-", 1)


def test_kafka_decides_by_a_witness_what_the_leader_decided(
    partition_assignor_oracle: Oracle,
) -> None:
    count = 0
    for seed in range(1, 3 * GROUPS, 3):  # without racks
        for step in steps(loaded(seed), generations=12):
            witness = step.verdict.witness
            if witness is None or witness.config.algorithm.release != NEWEST:
                continue
            if witness.config.algorithm.assignor == "public_sticky":
                continue  # the clients of its standbys are unpredictable
            count += 1
            answer = partition_assignor_oracle.ask(rebalance_of(step))
            assert "members" in answer, answer
            for member in step.played.generation.members():
                given, decided = member.assignment, answer["members"][member.member_id]
                assert given is not None
                assert {*map(str, given.active)} == {*decided["active"]}, (seed, step.number)
                assert {*map(str, given.standby)} == {*decided["standby"]}, (seed, step.number)
                asks = given.next_rebalance_ms is not None
                assert asks == (decided["next_rebalance_ms"] is not None), (seed, step.number)
    print(f"{count} witnesses decided")
    assert count >= GROUPS
