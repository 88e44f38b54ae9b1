"""Every kind of link: a group that is so, what is said of it, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.reassignments import BrokerRecord, ClusterRecord
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.explain import why
from caughtup.models.why.links import Link, Why
from tests.models.rebalances.test_causes import A, B
from tests.models.rebalances.test_causes import group as members
from tests.models.rebalances.test_table import commits
from tests.models.why.scenes import (
    GROUP,
    NOW_MS,
    ONE,
    TOPIC,
    ZERO,
    asked,
    figures,
    held_back,
    kinds,
    link_of,
    scene,
)
from tests.support.connect.clusters import settled, stormy
from tests.support.decisions import DECIDED_MS, decided_state
from tests.support.groups.records import GROUP as APPLICATION
from tests.support.groups.records import START_MS, commit, consumer_generation
from tests.support.groups.streams import WARMING, Member
from tests.support.reassignments.observations import a_reassignment
from tests.support.states import assess, open_transaction, read

METRICS = Path(__file__).resolve().parents[3] / "docs/reference/metrics.md"


def moving(state: ClusterState, partition: TopicPartition = ZERO, **fields: object) -> None:
    for at_ms in range(NOW_MS - 90_000, NOW_MS, 10_000):
        state.reassignments.apply(a_reassignment(partition, at_ms=at_ms, **fields))
    for _ in state.reassignment_watch.assess(state.reassignments, NOW_MS):
        pass


def rebalanced(state: ClusterState, silent_ms: int, times: int = 1) -> None:
    """Let member b be gone, and back, this long (ms) after its last commit."""
    both, alone = members(A, B, generation=1), members(A, generation=2)
    state.rebalances.compare(GROUP, both, NOW_MS - 400_000, [])
    for time in range(times):
        at_ms = NOW_MS - 60_000 + time * 1_000
        last = [commits(at_ms - silent_ms)]
        for number, one in ((2, alone), (3, both)):
            again = replace(one, generation=number + 2 * time)
            state.rebalances.compare(GROUP, again, at_ms, last)


def test_a_group_that_is_ok_has_one_link_with_the_figures() -> None:
    found = asked(scene({0: 10, 1: 10}))
    assert (found.verdict, kinds(found), found.not_known) == ("ok", ["ok"], [])
    assert figures(found.links[0])["partitions"] == 2
    assert found.links[0].text.startswith("The group is ok: all 2 partitions keep up")


def test_a_group_that_is_ok_and_rebalances_again_and_again_says_so_first() -> None:
    state = scene({0: 100})
    rebalanced(state, 2_000, times=5)
    found = asked(state)
    assert found.verdict == "ok"
    assert kinds(found) == ["rebalance_storm", "ok"]


def test_a_transaction_that_has_only_been_seen_once_is_possible_beside_ok() -> None:
    state = scene({0: 10})
    state.apply_ends(ZERO, EndOffsets(0, 2_190, 2_290, NOW_MS), now_ms=NOW_MS)
    state.transactions.apply([open_transaction("payments-1", [ZERO])], NOW_MS)
    found = asked(state)
    assert (found.verdict, kinds(found)) == ("ok", ["ok", "open_transaction"])
    assert found.links[1].sure == "possible"


def test_a_group_with_long_pauses_is_ok_and_commits_in_bursts() -> None:
    state = scene({0: 10}, until=1)
    for second in (60, 90):
        at_ms = START_MS + second * 1_000
        read(state, commit(0, 1_000 + second * 5, topic=TOPIC, group=GROUP, at_ms=at_ms))
    found = asked(state)
    assert (found.verdict, kinds(found)) == ("ok", ["bursts"])
    assert "offsets to read, the oldest for" in found.links[0].text


def test_no_members_is_certain_only_if_a_record_says_so() -> None:
    found = asked(scene({0: 10}, until=60, owners={}))
    assert kinds(found)[0] == "no_members"
    assert (found.links[0].sure, found.links[0].lag) == ("certain", 600)
    unrecorded = asked(never_in_a_record())
    assert (link_of(unrecorded, "no_members").sure, kinds(unrecorded)[0]) == (
        "possible",
        "no_progress",
    )


def never_in_a_record() -> ClusterState:
    state = scene({0: 10}, until=60)
    state.groups.forget(GROUP)
    return state


def test_a_partition_that_no_member_has() -> None:
    found = asked(scene({0: 10, 1: 10}, until=60, owners={"c1": (ZERO,)}))
    link = link_of(found, "partition_without_member")
    assert kinds(found)[0] == link.kind
    assert (link.topic, link.partition, link.lag, link.sure) == (TOPIC, 1, 600, "certain")


def test_a_hot_partition_comes_before_the_slow_group() -> None:
    found = asked(scene({0: 5, 1: 10}))
    assert kinds(found) == ["hot_partition", "slow_consumer"]
    slow = link_of(found, "slow_consumer")
    assert figures(slow)["committed a second"] == 5.0
    assert figures(slow)["produced a second"] == 10.0
    assert "at these rates it never catches up" in slow.text


def test_of_two_partitions_with_as_much_lag_neither_is_hot() -> None:
    assert "hot_partition" not in kinds(asked(scene({0: 10, 1: 10}, until=60)))


def test_a_stop_says_the_verdicts_own_reason() -> None:
    found = asked(scene({0: 10}, until=60))
    assert (found.verdict, kinds(found)) == ("stopped", ["no_progress"])
    assert "600 offsets to read and no commit for" in found.links[0].text


def test_an_open_transaction_before_the_group_names_its_producer() -> None:
    state = scene({0: 10})
    held_back(state)
    state.transactions.apply([open_transaction("payments-1", [ZERO])], NOW_MS)
    found = asked(state, now_ms=NOW_MS + 60_000)
    assert (found.verdict, kinds(found)) == ("blocked", ["open_transaction"])
    link = found.links[0]
    assert (link.transactional_id, link.lag, link.sure) == ("payments-1", 400, "likely")
    assert "Its coordinator aborts it in" in link.text


def test_an_open_transaction_whose_producer_is_unknown_is_a_link_too() -> None:
    state = scene({0: 10})
    held_back(state)
    found = asked(state, now_ms=NOW_MS + 60_000)
    assert "whose producer is not known yet" in link_of(found, "open_transaction").text
    assert any("producers were not asked" in one for one in found.not_known)


def test_a_group_that_reads_uncommitted_records_waits_for_no_transaction() -> None:
    state = scene({0: 5})
    held_back(state)
    state.assessments.reads_uncommitted.add(GROUP)
    assert "open_transaction" not in kinds(asked(state))


def test_a_rewound_group_re_reads() -> None:
    state = scene({0: 10})
    read(state, commit(0, 1_100, topic=TOPIC, group=GROUP, at_ms=NOW_MS - 1_000), seen_ms=NOW_MS)
    found = asked(state)
    assert (found.verdict, kinds(found)[0]) == ("rewound", "rewound")
    assert "went back from" in found.links[0].text


def test_a_topic_that_is_gone_is_likely_deleted() -> None:
    state = scene({0: 10}, until=60)
    read(state, commit(0, 7, topic="old", group=GROUP, at_ms=START_MS))
    found = asked(state)
    link = link_of(found, "topic_deleted")
    assert (link.topic, link.sure, kinds(found)[-1]) == ("old", "likely", "topic_deleted")
    assert "the lag on 1 partition: the log ends are not known" in found.not_known


def test_a_log_end_that_is_not_known_yet_is_no_deleted_topic() -> None:
    state = scene({0: 10}, until=60)
    read(state, commit(9, 7, topic=TOPIC, group=GROUP, at_ms=START_MS))
    assert "topic_deleted" not in kinds(asked(state))


@pytest.mark.parametrize(
    ("start", "says"), [(1_550, "lies behind the commit"), (1_650, "deleted 60")]
)
def test_unread_records_that_expire_come_last(start: int, says: str) -> None:
    found = asked(scene({0: 10}, until=60, start=start))
    assert kinds(found)[-1] == "retention_ahead"
    assert says in found.links[-1].text


def test_a_log_that_never_lost_a_record_has_no_retention_ahead() -> None:
    assert "retention_ahead" not in kinds(asked(scene({0: 0}, until=2)))


def test_a_partition_without_a_leader_comes_first() -> None:
    state = scene({0: 10, 1: 10}, until=60)
    moving(state, leader=None, leader_epoch=3, isr=())
    found = asked(state)
    assert (kinds(found)[0], found.links[0].sure) == ("no_leader", "certain")
    assert (found.links[0].topic, found.links[0].partition) == (TOPIC, 0)
    assert "reassignment" not in kinds(found)  # it is the same partition


@pytest.mark.parametrize("until", [60, 120])
def test_a_partition_that_lost_its_only_replica_comes_first_with_the_broker(until: int) -> None:
    state = scene({0: 10, 1: 10}, until=until)
    state.leaderless = {ONE: (2,)}
    found = asked(state)
    assert kinds(found)[:2] == ["broker_gone", "no_leader"]
    gone, lost = found.links[:2]
    assert (gone.broker, gone.sure, gone.partition) == (2, "likely", 1)
    assert (lost.sure, lost.partition) == ("certain", 1)


def test_a_topic_without_any_leader_is_not_deleted() -> None:
    state = scene({0: 10}, until=60)
    read(state, commit(0, 7, topic="old", group=GROUP, at_ms=START_MS))
    state.leaderless = {TopicPartition("old", 0): (2,)}
    assert "topic_deleted" not in kinds(asked(state))


def test_a_fenced_broker_that_no_partition_lacks_is_no_cause() -> None:
    state = scene({0: 10})
    state.leaderless = {}
    state.reassignments.apply_cluster(
        ClusterRecord(2, NOW_MS, {1: BrokerRecord(), 4: BrokerRecord(fenced=True)})
    )
    found = asked(state)
    assert kinds(found) == ["ok", "broker_gone"]
    assert "No partition of the group lacks a leader" in found.links[1].text


def test_a_log_end_that_nobody_lists_any_more_is_possibly_without_leader() -> None:
    state = scene({0: 10, 1: 10}, until=60)
    later = NOW_MS + 300_000
    state.apply_ends(ONE, EndOffsets(0, 9_000, 9_000, later), now_ms=later)
    link = link_of(asked(state, now_ms=later), "no_leader")
    assert (link.sure, link.partition) == ("possible", 0)


def test_a_reassignment_is_there_with_its_verdict_and_cause() -> None:
    state = scene({0: 10}, until=60)
    moving(state, offline=(3,))
    state.reassignments.apply_cluster(
        ClusterRecord(
            2, NOW_MS, {1: BrokerRecord(), 2: BrokerRecord(), 4: BrokerRecord(fenced=True)}
        )
    )
    for _ in state.reassignment_watch.assess(state.reassignments, NOW_MS):
        pass
    found = asked(state)
    link = link_of(found, "reassignment")
    assert figures(link)["cause"] in link.text
    assert figures(link)["verdict on the reassignment"] == "dead target"
    gone = [one for one in found.links if one.kind == "broker_gone"]
    assert [(one.broker, one.sure) for one in gone] == [(3, "possible"), (4, "possible")]
    assert "it has a leader" in gone[0].text  # so consumers read on
    assert kinds(found)[0] == "no_progress"


def test_what_brokers_did_not_tell_is_not_known() -> None:
    state = scene({0: 10}, until=60)
    state.reassignments.apply_cluster(
        ClusterRecord(2, NOW_MS, missing=("partitions in movement: refused",))
    )
    found = asked(state)
    assert "partitions in movement: refused" in found.not_known
    assert "which brokers are down: no broker told" in found.not_known


def test_a_recent_rebalance_that_the_group_has_not_recovered_from() -> None:
    state = scene({0: 10}, until=60)
    rebalanced(state, 2_000)
    link = link_of(asked(state), "recent_rebalance")
    assert (link.sure, link.client, link.member) == ("likely", "client-b", "b")
    assert "has not committed on" in link.text


def test_whoever_changed_its_subscription_is_named_and_not_the_topic() -> None:
    state = scene({0: 10}, until=60)
    before, after = (members(A, B, generation=number) for number in (1, 2))
    topics = frozenset({"clicks-2"}) | B.topics
    changed = replace(after, members=(A, B._replace(topics=topics)))
    state.rebalances.compare(GROUP, before, NOW_MS - 400_000, [])
    state.rebalances.compare(GROUP, changed, NOW_MS - 60_000, [commits(NOW_MS - 61_000)])
    text = link_of(asked(state), "recent_rebalance").text
    assert "(client-b changed its subscription)" in text


def test_a_storm_comes_before_no_progress_and_replaces_the_last_rebalance() -> None:
    state = scene({0: 10}, until=60)
    rebalanced(state, 2_000, times=5)
    found = asked(state)
    assert kinds(found) == ["rebalance_storm", "no_progress"]
    link = found.links[0]
    assert figures(link)["rebalances in ten minutes"] == 11
    assert link.client == "client-b"


def test_a_member_that_polls_too_late_comes_before_the_lag_that_it_causes() -> None:
    state = scene({0: 10}, until=60)
    rebalanced(state, 303_000)
    found = asked(state)
    assert kinds(found)[0] == "poll_interval_exceeded"
    link = found.links[0]
    assert (link.client, link.host, link.sure) == ("client-b", "/10.0.0.1", "likely")


def streams(*given: Member) -> Why:
    state = decided_state(*given)
    read(state, *(commit(number, 60, at_ms=START_MS) for number in (0, 1)))
    assess(state, DECIDED_MS)
    found = why(state, APPLICATION, DECIDED_MS)
    assert found is not None
    return found


def test_tasks_that_restore_hold_back_what_they_read() -> None:
    found = streams(
        Member("a", 1, owned=("0_0",), sums={"0_0": -2}, active=("0_0",)),
        Member("b", 2, sums={"0_1": 100}, active=("0_1",)),
    )
    link = link_of(found, "restoring_tasks")
    assert kinds(found)[0] == "restoring_tasks"
    assert (link.lag, figures(link)["offsets to restore"]) == (40, 49_900)
    assert "Task 0_1 on b" in link.text


def test_warm_ups_wait_for_a_probing_rebalance() -> None:
    link = link_of(streams(*WARMING), "warmups_waiting")
    assert "1 warm-up cannot yet take over a task" in link.text
    assert link.sure == "possible"


def test_a_failed_task_of_connect_explains_its_sinks_group() -> None:
    cluster = stormy(NOW_MS)
    now_ms = cluster.group.now_ms
    cluster.status("sink-0", "FAILED", "W1")
    found = why(cluster.state, "connect-sink", now_ms)
    assert found is not None
    assert found.links[0].kind == "connect_task_failed"
    assert found.links[0].connector == "sink"
    workers = why(cluster.state, cluster.name, now_ms)
    assert workers is not None
    assert kinds(workers) == ["connect_task_failed"]


def test_a_connect_group_without_a_failure_is_ok() -> None:
    cluster = settled()
    found = why(cluster.state, cluster.name, cluster.group.now_ms)
    assert found is not None
    assert kinds(found) == ["ok"]


def test_a_sinks_group_whose_connect_cluster_was_not_seen_says_so() -> None:
    found = asked(scene({0: 10}, until=60, group="connect-s3"), "connect-s3")
    assert any("no Connect group was seen" in one for one in found.not_known)


def test_an_unknown_group_has_no_answer() -> None:
    assert why(scene({0: 10}), "nobody", NOW_MS) is None


def test_a_group_without_commits_has_an_answer() -> None:
    state = scene({0: 10})
    read(state, consumer_generation(1, {"n1": (ONE,)}, group="new"))
    found = asked(state, "new")
    assert found.verdict == "unknown"
    assert found.not_known


TROUBLED: dict[str, Callable[[], ClusterState]] = {
    "slow": lambda: scene({0: 5, 1: 10}),
    "stopped": lambda: scene({0: 10}, until=60, start=1_650),
    "ok": lambda: scene({0: 10}),
}


@pytest.mark.parametrize("name", TROUBLED)
def test_every_metric_of_the_evidence_exists(name: str) -> None:
    documented = set(re.findall(r"`(caughtup_\w+)`", METRICS.read_text()))
    links: list[Link] = asked(TROUBLED[name]()).links
    named = {figure.metric for link in links for figure in link.evidence} - {""}
    assert named
    assert named <= documented


def test_every_metric_that_the_code_names_exists() -> None:
    documented = set(re.findall(r"`(caughtup_\w+)`", METRICS.read_text()))
    sources = (METRICS.parents[2] / "models/why").glob("*.py")
    named = {one for file in sources for one in re.findall(r'"(caughtup_\w+)"', file.read_text())}
    assert named <= documented
