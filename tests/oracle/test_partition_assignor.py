"""Every member's assignment as the published StreamsPartitionAssignor makes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from caughtup.models.errors import ScenarioError
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import Rebalance
from tests.oracle.conftest import AssignorOracle, seeds_of_a_family
from tests.oracle.generated.rebalances import (
    follow_up,
    generate_failing_rebalance,
    generate_public_sticky_rebalance,
    generate_racked_rebalance,
    generate_rebalance,
    generate_sticky_rebalance,
    generate_tagged_rebalance,
)
from tests.oracle.rebalance_parts import Json
from tests.oracle.shrinking_rebalances import shrink_rebalance
from tests.support.rebalance_parsing import parse_rebalance

#: Where the leader itself fails, because what a client's members own isn't in the topology at all.
FAILED_LEADER = "java.lang.IllegalStateException: Must initialize prevActiveTasks from"


@pytest.mark.family("whole rebalances")
@seeds_of_a_family(one_of=7)
def test_generated_rebalances_give_every_member_what_kafka_gives_it(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_assignments(partition_assignor_oracle, map(generate_rebalance, seeds)))


@pytest.mark.family("whole rebalances, sticky and fallback")
@seeds_of_a_family(one_of=7)
def test_rebalances_under_the_sticky_and_the_fallback_assignor_are_kafkas(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_assignments(partition_assignor_oracle, map(generate_sticky_rebalance, seeds)))


@pytest.mark.family("whole rebalances, offsets not to be had")
@seeds_of_a_family(one_of=7)
def test_rebalances_that_cannot_list_offsets_fall_back_as_kafka_does(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    failing = map(generate_failing_rebalance, seeds)
    tally(assert_same_assignments(partition_assignor_oracle, failing))


@pytest.mark.family("whole rebalances, client tags")
@seeds_of_a_family(one_of=7)
def test_rebalances_with_client_tags_are_kafkas(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_assignments(partition_assignor_oracle, map(generate_tagged_rebalance, seeds)))


@pytest.mark.family("whole rebalances, racks")
@seeds_of_a_family(one_of=7)
def test_rebalances_with_racks_are_kafkas(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_assignments(partition_assignor_oracle, map(generate_racked_rebalance, seeds)))


@pytest.mark.family("whole rebalances, public sticky without standbys")
@seeds_of_a_family(one_of=7)
def test_rebalances_under_the_public_sticky_assignor_are_kafkas(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    public = map(generate_public_sticky_rebalance, seeds)
    tally(assert_same_assignments(partition_assignor_oracle, public))


@pytest.mark.family("whole rebalances, the ones that follow")
@seeds_of_a_family(one_of=7)
def test_the_rebalance_that_follows_a_rebalance_is_kafkas(
    partition_assignor_oracle: AssignorOracle, seeds: range, tally: Callable[[int], None]
) -> None:
    following = (_following(partition_assignor_oracle, seed) for seed in seeds)
    tally(assert_same_assignments(partition_assignor_oracle, following))


def _following(oracle: AssignorOracle, seed: int) -> Json:
    """Decide a rebalance by Kafka, and return the next one if its leader didn't fail."""
    generate = (generate_rebalance, generate_sticky_rebalance, generate_tagged_rebalance)[seed % 3]
    rebalance = generate(seed)
    answer = oracle.decide(rebalance)
    return follow_up(seed, rebalance, answer["members"]) if "members" in answer else rebalance


def assert_same_assignments(oracle: AssignorOracle, rebalances: Iterable[Json]) -> int:
    """Assign here and there: all that a member's assignment says has to be the same.

    Returns how many rebalances there were. One that ends otherwise fails the test with its name,
    which has its seed, and with the least of it that still does.
    """
    count = 0
    for rebalance in rebalances:
        if not _alike(*_answers(oracle, rebalance)):
            pytest.fail(_report(oracle, rebalance), pytrace=False)
        count += 1
    return count


def _report(oracle: AssignorOracle, rebalance: Json) -> str:
    raised = ["exception" in answer for answer in _answers(oracle, rebalance)]

    def fails_alike(smaller: Json) -> bool:
        answers = _answers(oracle, smaller)
        return not _alike(*answers) and ["exception" in answer for answer in answers] == raised

    least = shrink_rebalance(rebalance, fails_alike)
    ours, theirs = map(json.dumps, _answers(oracle, least))
    return (
        f"{rebalance['name']} ends otherwise; the least of it that does:\n{json.dumps(least)}\n"
        f"ours: {ours}\nKafka's: {theirs}"
    )


def _alike(ours: Json, theirs: Json) -> bool:
    if "exception" in theirs:
        return str(theirs["exception"]).startswith(FAILED_LEADER) and ours.get("refused") is True
    return ours == theirs


def _answers(oracle: AssignorOracle, rebalance: Json) -> tuple[Json, Json]:
    """Return our assignments and Kafka's, or the exceptions in their places."""
    theirs = oracle.decide(rebalance)
    try:
        assigned = assign_partitions(parse_rebalance(rebalance))
        ours: Json = {"members": {name: one.to_dict() for name, one in assigned.items()}}
    except ScenarioError as refused:
        ours = {"exception": str(refused), "refused": True}
    except Exception as raised:  # noqa: BLE001 (whatever is raised here is a difference)
        ours = {"exception": repr(raised)}
    return ours, theirs


def test_a_difference_is_told_by_its_least_rebalance(
    partition_assignor_oracle: AssignorOracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assign_without_asking_again(rebalance: Rebalance) -> dict[str, MemberAssignment]:
        return {
            name: replace(given, next_rebalance_ms=given.next_rebalance_ms or None)
            for name, given in unbroken(rebalance).items()
        }

    unbroken = assign_partitions
    monkeypatch.setitem(globals(), "assign_partitions", assign_without_asking_again)
    with pytest.raises(pytest.fail.Exception, match="rebalance seed") as failure:
        assert_same_assignments(partition_assignor_oracle, map(generate_rebalance, range(100)))
    least = json.loads(str(failure.value).splitlines()[1])
    # One partition, which one member has and the other one shall have.
    assert len(least["subtopologies"]) == 1
    assert len(least["members"]) <= 2
    assert sum(len(member["owned"]) for member in least["members"].values()) <= 2


def test_the_generators_reach_what_they_have_to_reach(
    partition_assignor_oracle: AssignorOracle,
) -> None:
    """Or else agreement over their rebalances would prove little."""
    seen: Counter[object] = Counter()
    for seed in range(250):
        for generate in (generate_rebalance, generate_failing_rebalance):
            rebalance = generate(seed)
            _count_what_is_given(seen, rebalance)
            answer = partition_assignor_oracle.decide(rebalance)
            seen["the leader fails"] += "exception" in answer
            for assignment in answer.get("members", {}).values():
                next_ms = assignment["next_rebalance_ms"]
                seen["an active held back"] += next_ms == 0
                seen["the next probing"] += bool(next_ms)
                seen["a standby"] += bool(assignment["standby"])
                seen["hosts"] += "partitions_by_host" in assignment
    assert {("standbys", number) for number in range(3)} <= seen.keys()
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare


def _count_what_is_given(seen: Counter[object], rebalance: Json) -> None:
    members = rebalance["members"]
    threads = Counter(member["process"] for member in members.values())
    owned = Counter(tuple(one) for member in members.values() for one in member["owned"])
    sums = [one for member in members.values() for one in member["offset_sums"].values()]
    tables = [one["source_changelogs"] for one in rebalance["subtopologies"].values()]
    seen["one consumer"] += len(members) == 1
    seen["six processes"] += len(threads) == 6
    seen["eight threads"] += max(threads.values()) == 8
    seen["owned twice"] += max(owned.values(), default=0) > 1
    seen["owned but gone"] += any(topic == "gone" for topic, _ in owned)
    seen["running"] += -2 in sums
    seen["sum not known"] += -3 in sums
    seen["sum"] += any(one >= 0 for one in sums)
    seen["new topic"] += bool(rebalance["new_topics"])
    seen["source changelog"] += any(tables)
    seen["standbys", rebalance["config"]["num.standby.replicas"]] += 1
    seen["negative UUID"] += any(process[0] in "89abcdef" for process in threads)
    seen["UTF-16 order"] += any(
        sorted(own) != sorted(own, key=lambda name: name.encode("utf-16-be"))
        for own in ([name for name in members if members[name]["process"] == p] for p in threads)
    )
    seen["subtopology of 10 or more"] += "10" in rebalance["subtopologies"]
    seen["partition of 128 or more"] += max(rebalance["partitions"].values()) > 128
