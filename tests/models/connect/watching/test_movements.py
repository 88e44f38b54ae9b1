"""What becomes of connectors and tasks that change workers, generation by generation."""

from __future__ import annotations

from caughtup.models.connect.watching.movements import movements
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.records.fields import or_none
from tests.models.connect.watching.test_watch import settled, step
from tests.support.connect.playing import Group

D_MS = 300_000
CONNECTORS = {"A": 2, "B": 1}


def told(before: Watch | None, after: Watch) -> list[tuple[str, str, str, str | None]]:
    return [(one.event, one.name, one.to, or_none(one.from_)) for one in movements(before, after)]


def owners(group: Group, names: tuple[str, ...]) -> dict[str, str]:
    return {
        str(item): f"{worker.lower()}:8083"
        for worker in names
        for item in (*group.owned[worker].connectors, *group.owned[worker].tasks)
    }


def test_what_a_worker_left_is_planned_and_promoted_when_its_delay_is_over():
    group = Group(CONNECTORS)
    watch = settled(group)
    lost = owners(group, ("W2",))
    group.leave("W2")
    away = step(group, watch)
    planned = told(watch, away)
    assert {(kind, name) for kind, name, _, _ in planned} == {("planned", name) for name in lost}
    assert {source for _, _, _, source in planned} == {"w2:8083"}
    assert told(None, away) == [(kind, name, to, None) for kind, name, to, _ in planned]
    over = step(group, away, D_MS)
    assert [(kind, name, to) for kind, name, to, _ in told(away, over)] == [
        ("promoted", name, to) for _, name, to, _ in planned
    ]
    assert {one.reason for one in movements(away, over)} == {
        "its worker left the group, and the delay is over"
    }


def test_a_plan_for_another_is_dropped_once_its_worker_is_back_in_time():
    group = Group(CONNECTORS)
    watch = settled(group)
    lost = owners(group, ("W2",))
    group.leave("W2")
    away = step(group, watch)
    group.join("W2")
    back = step(group, away, 1_000)
    steps = told(away, back)
    assert {(kind, name) for kind, name, _, _ in steps} == {
        (kind, name) for name in lost for kind in ("dropped", "planned")
    }
    assert {to for kind, _, to, _ in steps if kind == "planned"} == {"w2:8083"}
    whys = {one.why for one in movements(away, back) if one.event == "dropped"}
    assert whys == {"it is no longer planned"}
    over = step(group, back, D_MS)
    assert {(kind, to) for kind, _, to, _ in told(back, over)} == {("promoted", "w2:8083")}


def test_what_is_new_is_planned_and_promoted_in_one_generation_and_a_generation_is_told_once():
    group = Group(CONNECTORS)
    watch = settled(group)
    group.connectors["C"] = 1
    after = step(group, watch)
    assert [(one.event, one.name, one.reason) for one in movements(watch, after)] == [
        (kind, item, "it is new") for item in ("C", "C-0") for kind in ("planned", "promoted")
    ]
    assert list(movements(after, step(group, after))) == []
