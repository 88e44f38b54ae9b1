"""What a Python application's leader decides, and what the service makes of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from caughtup.followers.python.group_snapshot import Members, read_group
from caughtup.followers.python.rebalance import RebalanceDecision, decide_rebalance, keep_in_place
from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.assignment.compact import CompactScenario, scenario_record
from caughtup.models.assignors.following.follower import (
    FOLLOWED,
    GIVEN_UP,
    FollowerInputs,
    Patience,
)
from caughtup.models.assignors.following.recommendation import Objection, read_followed
from caughtup.models.decisions.deciding import DecisionContext, decide_if_due
from caughtup.models.decisions.exact.follower import PublishedRecommendation, recompute_follower
from caughtup.models.decisions.inputs.application_state import (
    ApplicationState,
    find_state,
    read_state,
)
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS, GenerationLife, State
from caughtup.models.groups.generation import (
    FOLLOWERS_PROTOCOL,
    StreamsGeneration,
    read_streams_generation,
)
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.learning.learned import Learned, learn
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.records.application_states import FORMAT
from caughtup.models.records.fields import json_values
from caughtup.models.records.keys import encode_group
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMetadata,
)
from caughtup.models.wire.user_data import (
    SubscriptionInfo,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)
from tests.followers.generated_questions import recommend
from tests.support.groups.records import group_member
from tests.support.sizes import daily

GROUP = "orders"
NOW_MS = 1_800_000_000_000
PATIENCE = Patience()
TOPOLOGY = Topology(
    [
        TopicGroup(("placed", "paid"), {"latest": "latest-log", "sums": "sums-log"}),
        TopicGroup(("clicks",), {"seen": "seen-log"}),
        TopicGroup(("pings",)),
    ]
)
COUNTS = {"placed": 4, "paid": 3, "clicks": 5, "pings": 2}
TASKS = TOPOLOGY.tasks(COUNTS, COUNTS)
ENDS = {one: 1_000 for changelogs in TASKS.changelogs.values() for one in changelogs}
CONFIG = {"acceptable.recovery.lag": 10, "num.standby.replicas": 0}
NONE = Objection("no_recommendation", "there is no recommendation for orders")

thorough = settings(print_blob=True, deadline=None, max_examples=daily(60, 150))
sums = st.sampled_from([-2, 0, 100, 1_995, 2_000, 5_000])
reported = st.dictionaries(st.sampled_from(sorted(TASKS.sources)), sums)
seeds = st.integers(0, 1 << 32)


@st.composite
def memberships(draw: st.DrawFn) -> dict[str, SubscriptionInfo | None]:
    members: dict[str, SubscriptionInfo | None] = {}
    for number in range(draw(st.integers(1, 6))):
        data = encode_subscription_info(ProcessId(0, number), draw(reported), number)
        readable = draw(st.integers(0, 9)) > 0
        members[f"member-{number}"] = decode_subscription_info(data) if readable else None
    return members


def decided(
    members: Members, inputs: FollowerInputs, config: Mapping[str, Any] = CONFIG, ends: Any = ENDS
) -> RebalanceDecision:
    own = ProcessId(0, 0)
    return decide_rebalance(
        TOPOLOGY, read_group(TASKS, members, ends, config), own, inputs, PATIENCE, NOW_MS
    )


def inputs_from(led: RebalanceDecision, seed: int, waited: int = 0) -> FollowerInputs:
    """Hear what would be recommended in what a leader told."""
    state = told_of(led)
    record = recommend(random.Random(seed), json_values(scenario_record(state.scenario)))
    return FollowerInputs(read_followed(record, GROUP), waited=waited)


def assert_whole(assignments: Mapping[str, MemberAssignment], members: Members) -> None:
    """Every partition has one reader, every task one active, and no member both of a task."""
    assert assignments.keys() == members.keys()
    partitions = Counter(one for has in assignments.values() for one in has.partitions)
    assert partitions == Counter(one for sources in TASKS.sources.values() for one in sources)
    active = {member: set(has.active) for member, has in assignments.items()}
    assert sum(map(len, active.values())) == len(TASKS.sources)
    assert set().union(*active.values()) == set(TASKS.sources)
    for member, has in assignments.items():
        assert not active[member] & has.standby.keys()
        assert has.standby.keys() <= TASKS.changelogs.keys()
        pairs = zip(has.partitions, has.active, strict=True)
        assert all(one in TASKS.sources[task] for one, task in pairs)


@thorough
@given(memberships(), seeds, st.integers(0, 3))
def test_no_partition_is_given_to_two_members_and_none_to_nobody(
    members: Members, seed: int, waited: int
) -> None:
    kept = decided(members, FollowerInputs(NONE, waited=waited))
    assert kept.decision.reason == ("no_recommendation" if waited < 3 else GIVEN_UP)
    assert_whole(kept.assignments, members)
    followed = decided(members, inputs_from(kept, seed, waited))
    assert_whole(followed.assignments, members)


@thorough
@given(memberships())
def test_where_nothing_can_be_decided_every_member_keeps_what_it_runs(members: Members) -> None:
    kept = keep_in_place(TASKS, members, ProcessId(0, 0), NOW_MS)
    assert_whole(kept, members)
    for task in TASKS.sources:
        runners = {
            member
            for member, info in members.items()
            if info is not None and info.offset_sums.get(task) == -2
        }
        (runner,) = (member for member, has in kept.items() if task in has.active)
        assert runner in runners or not runners
    asking = {member for member, has in kept.items() if has.next_rebalance_ms is not None}
    assert asking == ({"member-0"} if members["member-0"] else set())


@thorough
@given(memberships(), seeds, st.integers(0, 4), st.integers(0, 3), st.sampled_from([0, 10**7]))
def test_the_service_finds_that_a_rebalance_was_decided_by_the_rules(
    members: Members, seed: int, waited: int, repeated: int, age_ms: int
) -> None:
    # A leader can read what it said itself.
    assume(members["member-0"] is not None)
    readable = {member: info for member, info in members.items() if info is not None}
    inputs = FollowerInputs(NONE, waited=waited)
    first = decided(readable, inputs)
    told = told_of(first)
    record = recommend(random.Random(seed), json_values(scenario_record(told.scenario)))
    second = decided(
        readable, FollowerInputs(read_followed(record, GROUP), age_ms, waited, repeated)
    )
    for led in (first, second):
        seen = generation(readable, led)
        state = find_state(seen, [told_of(led)])
        assert state is not None
        inputs = GenerationInputs(state.scenario, {}, (), (), (), "application")
        exact = recompute_follower(seen, inputs, state, [published(record)])
        assert (exact.leader.result, exact.leader.why) == ("match", "")


def published(record: Mapping[str, Any]) -> PublishedRecommendation:
    """Return a recommendation as the service has it of a follower, which reads less of it."""
    warm_ups = {one: frozenset(tasks["warmup"]) for one, tasks in record["assignment"].items()}
    return PublishedRecommendation(record["decision_id"], warm_ups, read_followed(record, GROUP))


def told_of(led: RebalanceDecision) -> ApplicationState:
    """What the service reads of it."""
    record = msgspec.structs.replace(led.record, group=GROUP, state_id="s1")
    _, told = read_state(encode_group(GROUP), FORMAT.encode(record), NOW_MS)
    assert told is not None
    return told


def generation(members: Members, led: RebalanceDecision) -> StreamsGeneration:
    """The generation as the coordinator writes it down, read as the service reads it."""
    written = []
    for member, info in members.items():
        assert info is not None
        has = led.assignments[member]
        said = encode_subscription_info(info.process_id, info.offset_sums, info.unique_field)
        told = encode_assignment_info(has.active, has.standby, has.next_rebalance_ms)
        topics = tuple(TOPOLOGY.topics)
        written.append(
            group_member(
                member,
                ConsumerSubscription(0, topics, said, (), -1, None),
                ConsumerAssignment(0, has.partitions, told),
            )
        )
    metadata = GroupMetadata("consumer", 3, FOLLOWERS_PROTOCOL, "member-0", NOW_MS, tuple(written))
    read = read_streams_generation(GROUP, metadata, {})
    assert read is not None
    return read


def info(number: int, offset_sums: Mapping[TaskId, int]) -> SubscriptionInfo:
    return decode_subscription_info(encode_subscription_info(ProcessId(0, number), offset_sums, 0))


RUNNING = info(0, dict.fromkeys(TASKS.sources, -2))
NO_SCENARIO = CompactScenario(None, "minimal_movement", {}, {}, {})


def test_a_rebalance_that_was_not_told_is_undetermined() -> None:
    members = {"member-0": RUNNING}
    seen = generation(members, decided(members, FollowerInputs(NONE)))
    assert seen.follows
    inputs = GenerationInputs(NO_SCENARIO, {}, (), (), (), "settings")
    _, verdict = learn(Learned(), seen, inputs, 0)
    assert verdict.result == "undetermined"
    assert verdict.why == "its leader is a follower, and did not publish its inputs"


def test_what_the_leader_tells_is_waited_for_and_not_for_ever() -> None:
    members = {"member-0": RUNNING}
    seen = generation(members, decided(members, FollowerInputs(NONE)))
    ends = EndOffsetTable()
    for partition in ENDS:
        for at_ms in (NOW_MS - 60_000, NOW_MS + 1_000):
            ends.apply(partition, EndOffsets(0, 1_000, 1_000, at_ms))
    changelogs = {0: ("latest-log", "sums-log"), 1: ("seen-log",), 2: ()}
    known = DecisionContext(ApplicationParameters(changelogs=changelogs), ends=ends)
    life = decide_if_due("cluster", GenerationLife(seen, NOW_MS), known, NOW_MS + 1_000)
    assert life.state is State.AWAITS_LEADER
    assert life.waits(ends, (), NOW_MS + 1_000)
    life = decide_if_due("cluster", life, known, NOW_MS + LEADER_STATE_WAIT_MS)
    assert life.state is State.DECIDED
    assert life.decision is not None
    assert life.decision.exact.leader.result == "undetermined"


def test_a_new_member_gets_nothing_until_it_is_recommended_or_waited_for() -> None:
    members = {"member-0": RUNNING, "member-1": info(1, {})}
    kept = decided(members, FollowerInputs(NONE, waited=2))
    assert kept.assignments["member-1"].active == ()
    assert kept.assignments["member-0"].next_rebalance_ms == NOW_MS + PATIENCE.follow_up_ms
    assert kept.assignments["member-1"].next_rebalance_ms is None
    given_up = decided(members, FollowerInputs(NONE, waited=3))
    # What has no state goes at once, what has warms up first.
    assert len(given_up.assignments["member-1"].standby) == 2
    assert all(task.subtopology == 2 for task in given_up.assignments["member-1"].active)
    recommended = decided(members, inputs_from(kept, 1))
    assert recommended.decision.reason == FOLLOWED
    assert recommended.record.outcome.followed == recommended.decision.decision_id


def test_lags_are_unknown_while_ends_are() -> None:
    members = {"member-0": RUNNING, "member-1": info(1, {TaskId(0, 0): 500})}
    led = decided(members, FollowerInputs(NONE), ends={})
    state = told_of(led)
    assert {lag for one in state.scenario.expanded().clients for lag in one.lags.values()} == {
        -2,
        -3,
    }
    assert led.assignments["member-0"].active


def test_a_copy_beyond_the_ends_shows_that_they_are_old() -> None:
    ahead = {TaskId(1, 0): 1_500}
    members = {"member-0": RUNNING, "member-1": info(1, ahead)}
    state = told_of(decided(members, FollowerInputs(NONE)))
    lags = state.scenario.expanded().clients[1].lags
    assert lags[TaskId(1, 0)] == 0
    assert lags[TaskId(1, 1)] == 1_000


def test_the_state_is_what_the_follower_for_kafka_streams_would_tell() -> None:
    told = decided({"member-0": RUNNING, "member-1": info(1, {})}, FollowerInputs(NONE)).record
    record = json_values(told)
    assert record["config"] == {
        "acceptable.recovery.lag": 10,
        "max.warmup.replicas": 2,
        "num.standby.replicas": 0,
        "probing.rebalance.interval.ms": 600_000,
        "rack.aware.assignment.tags": [],
        "rack.aware.assignment.strategy": "none",
        "rack.aware.assignment.traffic_cost": None,
        "rack.aware.assignment.non_overlap_cost": None,
    }
    assert record["tasks"]["0_3"] == {
        "stateful": True,
        "stores": ["latest", "sums"],
        "source_partitions": [["placed", 3]],
        "changelog_partitions": [["latest-log", 3], ["sums-log", 3]],
    }
    assert record["tasks"]["2_1"]["stateful"] is False
    assert record["greatest_lags"]["0_0"] == 2_000
    one, two = record["clients"].values()
    assert one["previous_active"] == [str(task) for task in sorted(TASKS.sources)]
    assert two == {
        "capacity": 1,
        "client_ids": ["member-1"],
        "tags": {},
        "previous_active": [],
        "previous_standby": [],
        "lags": {},
    }


def test_topics_that_somebody_does_not_read_wait_until_all_do() -> None:
    tasks = TOPOLOGY.tasks(COUNTS, {"placed", "paid", "pings"})
    assert {task.subtopology for task in tasks.sources} == {0, 2}
    assert TOPOLOGY.tasks({"clicks": 1}, {"clicks"}).sources == {
        TaskId(1, 0): (TopicPartition("clicks", 0),)
    }
