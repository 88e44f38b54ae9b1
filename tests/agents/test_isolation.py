"""A group that can't be shown or written costs itself alone: /metrics, the page, the lag topic."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from caughtup.agents import lag_topic
from caughtup.agents.lag_topic import LagTopic
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.reassignments.agent import event_records
from caughtup.agents.settings import Settings
from caughtup.agents.web.metrics import exposition, groups
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.page import parts as page_state
from caughtup.agents.web.page.parts import whole_steps
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessment import Assessments
from caughtup.models.offsets import LONG_MAX, EndOffsets
from caughtup.models.reassignments.events import ReassignmentEvents
from caughtup.models.records.fields import changed
from caughtup.models.shown import groups as shown_groups
from caughtup.models.shown.groups import GroupLine
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS, commit
from tests.support.isolation import BAD, GOOD, NOW_MS, BreaksError, breaks_for_bad, two_applications
from tests.support.observability.scraping import COMPATIBLE, scrape, text
from tests.support.reassignments.reassigning import DEAD, FINE, SEEN_MS, reassigning
from tests.support.states import STOPPED, assess, judged, read


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> ClusterState:
    monkeypatch.setattr(exposition, "now_ms", lambda: NOW_MS)
    state = two_applications()
    assert len(list(state.decide(START_MS + 1_000))) == 2
    assess(state, NOW_MS)
    return state


def faults(state: ClusterState) -> set[tuple[str, str, str]]:
    return {(fault.part, fault.subject, fault.cause) for fault in state.faults.newest()}


def lines(state: ClusterState, **options: Any) -> list[str]:
    """What there is to scrape, but for what is told of faults."""
    return [line for line in text(state, **options).splitlines() if "fault" not in line]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (GroupLabels, "of"),
        (ClusterState, "task_rows"),
        (groups, "escaped"),
    ],
)
def test_a_scrape_has_the_lines_of_every_other_group(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    whole = lines(state, others=COMPATIBLE)
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, owner, name)
        left = lines(state, others=COMPATIBLE)
    missing = set(whole) - set(left)
    assert missing
    assert [line for line in missing if f'"{BAD}"' not in line] == []
    assert set(left) < set(whole)
    assert faults(state) == {("metrics", BAD, "BreaksError")}
    recent = scrape(state)["caughtup_recent_faults"]
    assert list(recent) == [("BreaksError", "metrics", BAD)]
    assert lines(state, others=COMPATIBLE) == whole


def test_a_group_whose_figures_cannot_be_read_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, works = judged(), Assessments.column
    monkeypatch.setattr(exposition, "now_ms", lambda: NOW_MS)

    def breaks(self: Assessments, field: str, group: str, partitions: Any) -> Any:
        if group == STOPPED:
            raise BreaksError
        return works(self, field, group, partitions)

    whole = lines(state)
    monkeypatch.setattr(Assessments, "column", breaks)
    left = lines(state)
    missing = [line for line in whole if line not in left]
    assert missing
    assert [line for line in missing if f'group="{STOPPED}"' not in line] == []
    assert left == [line for line in whole if line not in missing]
    assert faults(state) == {("metrics", STOPPED, "BreaksError")}


def test_an_application_that_cannot_be_counted_costs_itself_alone(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lines(state)
    monkeypatch.setattr(state.applications[BAD], "movement_counts", None)
    state.watches[BAD].client_ids = {}
    monkeypatch.setattr(state.watches[BAD], "probing", object())
    missing = set(whole) - set(lines(state))
    assert {line.partition("{")[0] for line in missing} >= {
        "caughtup_task_status",
        "caughtup_movements_total",
        "caughtup_probing_rebalance_worthwhile",
    }
    assert [line for line in missing if f'"{BAD}"' not in line] == []


@pytest.mark.parametrize("name", [family.name for family in exposition.FAMILIES])
def test_a_family_that_breaks_leaves_the_others_be(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def breaks(*_: Any) -> Any:
        raise BreaksError
        yield

    whole = lines(state)
    for section, families in vars(exposition).copy().items():
        if section.endswith(("_FAMILIES", "_TOTALS")):
            broken = [
                family._replace(lines=breaks, subjects=None) if family.name == name else family
                for family in families
            ]
            monkeypatch.setattr(exposition, section, broken)
    missing = set(whole) - set(lines(state))
    assert {line.partition("{")[0] for line in missing} <= {name}
    unknown = {
        "caughtup_offsets_last_poll_timestamp_seconds",
        "caughtup_cluster_info",
        "caughtup_group_lag_objective_seconds",
        "caughtup_last_turn_age_seconds",
    }
    assert faults(state) == (set() if name in unknown else {("metrics", name, "BreaksError")})


def test_a_movement_that_cannot_be_written_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = reassigning()
    monkeypatch.setattr(exposition, "now_ms", lambda: SEEN_MS)
    whole = lines(state)
    monkeypatch.setattr(state.reassignments.ongoing[DEAD], "since_ms", None)
    left = lines(state)
    missing = set(whole) - set(left)
    assert {line.partition("{")[0] for line in missing} == {"caughtup_reassignment_age_seconds"}
    assert all('topic="dead"' in line for line in missing)


def page(state: ClusterState) -> dict[str, Any]:
    steps = whole_steps(state, Health(ready=True), NOW_MS)
    found: dict[str, Any] = json.loads(msgspec.json.encode(done_at_once(steps)))
    return found


@pytest.mark.parametrize(
    ("module", "name", "group_shown", "application_shown"),
    [(shown_groups, "group_line", False, True), (page_state, "application_view", True, False)],
)
def test_the_page_has_every_other_group_and_says_what_failed(
    state: ClusterState,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    group_shown: bool,
    application_shown: bool,
) -> None:
    breaks_for_bad(monkeypatch, module, name)
    shown = page(state)
    groups = {row["group"] for row in shown["groups"]}
    applications = {row["group"] for row in shown["applications"]}
    assert groups == {GOOD} | ({BAD} if group_shown else set())
    assert applications == {GOOD} | ({BAD} if application_shown else set())
    (fault,) = shown["faults"]
    assert (fault["part"], fault["subject"], fault["cause"]) == ("page", BAD, "BreaksError")


def test_a_group_that_json_cannot_tell_is_left_out_of_the_page(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = shown_groups.group_line

    def no_json(state: ClusterState, group: str) -> GroupLine:
        line = works(state, group)
        return changed(line, lag=object()) if group == BAD else line

    monkeypatch.setattr(shown_groups, "group_line", no_json)
    assert [row["group"] for row in page(state)["groups"]] == [GOOD]


def test_the_lags_of_a_group_add_up_to_no_more_than_an_offset(state: ClusterState) -> None:
    for number in range(3):
        ends = EndOffsets(0, LONG_MAX, LONG_MAX, START_MS)
        state.apply_ends(TopicPartition("huge", number), ends)
    read(state, *(commit(number, 0, topic="huge", group="far") for number in range(3)))
    (row,) = [row for row in page(state)["groups"] if row["group"] == "far"]
    assert row["lag"] == LONG_MAX


def test_a_movement_that_cannot_be_told_costs_its_own_partition_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = reassigning()
    works = ReassignmentEvents.new_events

    def breaks(self: ReassignmentEvents, tracker: Any, partition: TopicPartition) -> Any:
        if partition == DEAD:
            raise BreaksError
        return works(self, tracker, partition)

    monkeypatch.setattr(ReassignmentEvents, "new_events", breaks)
    assert event_records(state, DEAD) == []
    ((key, value),) = event_records(state, FINE)
    assert (key, json.loads(value)["event"]) == (b"fine-0", "planned")
    assert faults(state) == {("movements", str(DEAD), "BreaksError")}


class Written(Producer):
    """A producer that has no brokers, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
        self.records: dict[tuple[str, ...], Any] = {}

    def produce(self, topic: str, value: bytes | None, key: bytes, **_: Any) -> None:
        parts = tuple(map(str, json.loads(key)))
        self.records[parts] = None if value is None else json.loads(value)


async def test_a_group_whose_lines_cannot_be_made_has_none_on_the_lag_topic(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    assess(state, NOW_MS)
    topic = LagTopic(Settings(), state, Health(ready=True), lambda: True)
    producer = Written()
    assert await topic._round(producer)
    written = dict(producer.records)
    assert {key[0] for key, value in written.items() if value} == {BAD, GOOD}
    with monkeypatch.context() as patch:
        breaks_for_bad(patch, lag_topic, "copy_lines")
        producer.records.clear()
        assert await topic._round(producer)
    assert producer.records == {key: None for key in written if key[0] == BAD}
    assert faults(state) == {("lag", BAD, "BreaksError")}
    producer.records.clear()
    assert await topic._round(producer)
    assert producer.records == {key: value for key, value in written.items() if key[0] == BAD}
