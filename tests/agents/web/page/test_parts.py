"""What the page is told: all of it JSON, with what is unknown left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

import caughtup
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.web.page.head import REASSIGNMENTS_SHOWN, reassignment_fields
from caughtup.agents.web.page.parts import WholeView, whole_steps
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import json_values
from caughtup.models.shown.groups import group_line
from caughtup.models.state.cluster import ClusterState
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.changes import Change, changes
from tests.support.groups.records import GROUP, START_MS, commit
from tests.support.plain_scrape import plain_summary
from tests.support.reassignments.reassigning import (
    ORPHANED_MS,
    SEEN_MS,
    cluster_observation,
    ongoing_observation,
    reassigning,
)
from tests.support.states import (
    HOSTILE,
    JUDGED_MS,
    KEEPING_UP,
    NOW_MS,
    STOPPED,
    assess,
    cluster_state,
    everything,
    judged,
    list_ends,
    read,
)


def whole_state(state: ClusterState, health: Health, now_ms: int, limited: int = 0) -> WholeView:
    """Go through all the steps at once."""
    return done_at_once(whole_steps(state, health, now_ms, limited))


def test_the_clusters_name_is_shown_where_somebody_gave_it_one() -> None:
    assert "cluster_name" not in shown(cluster_state())
    assert shown(cluster_state(), Health(cluster_name=HOSTILE))["cluster_name"] == HOSTILE


def shown(state: ClusterState, health: Health | None = None) -> dict[str, Any]:
    """Return the state as the page parses it."""
    value = whole_state(state, health or Health(), NOW_MS)
    found = json.loads(msgspec.json.encode(value))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return shown(everything(), Health(ready=True, reader_lag=0))


def test_it_says_how_the_service_itself_is_doing(page: dict[str, Any]) -> None:
    assert (page["schema"], page["ready"], page["now_ms"]) == (1, True, NOW_MS)
    assert (page["cluster"], page["version"]) == ("cluster-1", caughtup.__version__)
    assert page["reader"] == {"records": 8, "lag": 0, "decode_errors": 1}
    assert shown(cluster_state())["reader"] == {"records": 0, "decode_errors": 0}


def test_groups_are_summed_up_in_order(page: dict[str, Any]) -> None:
    groups = {group["group"]: group for group in page["groups"]}
    assert list(groups) == sorted([HOSTILE, "gone", GROUP, "plain", "sharing"])
    assert groups["plain"] == {
        "group": "plain",
        "group_type": "classic",
        "members": 2,
        "partitions": 2,
        "lag": 120,
        "generation": 3,
    }
    assert groups["gone"] == {"group": "gone", "partitions": 1}


def test_a_groups_lag_is_left_out_while_one_of_its_partitions_is_unknown() -> None:
    state = cluster_state()
    read(state, commit(0, 5), commit(1, 5))
    list_ends(state, {0: 9}, at_ms=START_MS, topic="orders-in")
    assert "lag" not in json_values(group_line(state, GROUP))
    list_ends(state, {1: 9}, at_ms=START_MS, topic="orders-in")
    assert json_values(group_line(state, GROUP))["lag"] == 8


def test_a_group_has_its_verdict_with_the_reason_and_its_worst_lag_in_seconds(
    page: dict[str, Any],
) -> None:
    groups = {group["group"]: group for group in page["groups"]}
    assert groups["plain"].keys().isdisjoint({"status", "why", "lag_seconds"})  # not assessed yet
    summary = json_values(group_line(judged(), STOPPED))
    assert summary["status"] == "stopped"
    assert summary["why"].startswith("clicks-1: 4,900 offsets to read and no commit for 49 min")
    assert summary["lag_seconds"] == pytest.approx(49 * 60, abs=60)
    assert summary["lag_seconds_method"] == "interpolated"
    summary = json_values(group_line(judged(), KEEPING_UP))
    assert (summary["status"], summary["lag_seconds"]) == ("ok", 0)
    assert summary["lag_seconds_method"] == "caught_up"


def test_a_groups_lag_in_seconds_is_left_out_while_one_of_its_partitions_is_unknown() -> None:
    state = judged()
    list_ends(state, {9: 100}, at_ms=JUDGED_MS, topic="clicks")  # looked at once
    read(state, commit(9, 50, topic="clicks", group=STOPPED), commit(0, 5, topic="g", group="gone"))
    assess(state)
    summary = json_values(group_line(state, STOPPED))
    assert (summary["status"], "lag_seconds" in summary) == ("stopped", False)
    assert json_values(group_line(state, "gone"))["status"] == "unknown"
    assert "lag_seconds" not in json_values(group_line(state, "gone"))


def test_a_partition_of_a_topic_that_is_gone_hides_no_lag_in_seconds() -> None:
    state = judged()
    read(state, commit(0, 5, topic="deleted", group=STOPPED))
    assess(state)
    summary = json_values(group_line(state, STOPPED))
    assert "lag" not in summary
    assert summary["lag_seconds"] == pytest.approx(49 * 60, abs=60)


def test_partitions_in_movement_are_there_with_how_they_fare_and_how_others_ended() -> None:
    told = whole_state(reassigning(), Health(), SEEN_MS)
    rows = [(row.topic, row.verdict) for row in told.reassignments]
    assert rows == [("dead", "dead target"), ("new", "measuring"), ("fine", "moving")]
    assert told.reassignment_counts == {"dead target": 1, "measuring": 1, "moving": 1}
    assert list(told.reassignment_counts) == ["dead target", "measuring", "moving"]
    ended = [(row.topic, row.outcome) for row in told.recent_reassignments]
    assert ended == [("lost", "vanished"), ("done", "completed")]
    assert (told.throttles, told.reassignments_missing) == ((), ())
    assert [t.name for t in reassignment_fields(reassigning(), ORPHANED_MS)["throttles"]] == [
        "6",
        "left",
    ]


def test_of_many_partitions_in_movement_the_page_gets_the_worst_and_the_counts() -> None:
    state = reassigning()
    for number in range(5_000):
        partition = TopicPartition("many", number)
        state.reassignments.apply(ongoing_observation(partition, 2, SEEN_MS, number))
    told = reassignment_fields(state, SEEN_MS)
    assert len(told["reassignments"]) == REASSIGNMENTS_SHOWN
    assert told["reassignments"][0].topic == "dead"
    assert told["reassignment_counts"] == {"dead target": 1, "measuring": 5_001, "moving": 1}
    assert len(msgspec.json.encode(told)) < 60_000


def test_what_the_last_look_lacked_is_told() -> None:
    state = reassigning()
    state.reassignments.apply_cluster(
        cluster_observation(SEEN_MS, missing=("DESCRIBE on the cluster",))
    )
    assert shown(state)["reassignments_missing"] == ["DESCRIBE on the cluster"]


def test_a_clock_behind_the_records_gives_no_negative_age() -> None:
    state = everything()
    (row,) = whole_state(state, Health(), START_MS - 5_000).reassignments
    assert (row.age_seconds, row.idle_seconds) == (0, 0)


def test_a_group_of_a_hostile_name_keeps_it(page: dict[str, Any]) -> None:
    assert HOSTILE in {group["group"] for group in page["groups"]}


def test_what_was_set_aside_is_told_of_its_group_and_of_all() -> None:
    state = everything()
    state.set_aside.add("caughtup-movements", GROUP.encode(), "too_large", "9 bytes", NOW_MS)
    page = shown(state)
    (application,) = page["applications"]
    told = {
        "topic": "caughtup-movements",
        "key": GROUP,
        "reason": "too_large",
        "message": "9 bytes",
        "times": 1,
        "at_ms": NOW_MS,
    }
    assert application["set_aside"] == page["set_aside"] == [told]


@settings(print_blob=True, deadline=None)
@given(changes)
def test_a_group_is_summed_up_as_its_partitions_are_one_by_one(made: list[Change]) -> None:
    state = cluster_state()
    for change in made:
        change(state)
        for group in state.group_names():
            found = json_values(group_line(state, group))
            plain = plain_summary(state, group)
            summed = ("partitions", "lag", "lag_seconds", "lag_seconds_method")
            assert {name: found[name] for name in summed if name in found} == plain


def test_groups_that_are_left_out_are_counted_and_not_described() -> None:
    state = ClusterState("c", {}, Watching(WatchPatterns(ignored_groups=("ignored.*",))))
    read(state, *(commit(0, 1, group=group) for group in ("ignored-1", "ignored-2", "plain")))
    found = json.loads(
        msgspec.json.encode(whole_state(state, Health(ready=True), NOW_MS, limited=3))
    )
    assert [each["group"] for each in found["groups"]] == ["plain"]
    assert found["groups_not_told"] == {"ignored": 2, "folded": 0, "limited": 3}
