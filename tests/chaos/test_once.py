from __future__ import annotations

import struct

import pytest

from tests.chaos.once import MOVEMENTS, RECOMMENDATIONS, Once
from tests.chaos.said import (
    COMMITTED,
    END,
    GENERATION,
    GROUP_LAG,
    Figure,
    read_metrics,
    read_page,
    read_page_age,
)
from tests.chaos.teller import read_generation
from tests.support.groups.streams import Member, generation

EVENT = {
    "group": "orders",
    "plan": "recommended",
    "decision_id": "d",
    "event": "planned",
    "task": "0_1",
    "to": "p",
}


def test_a_generation_is_recommended_for_once_in_the_life_of_its_topic() -> None:
    once = Once(frozenset({"orders"}))
    record = {"group": "orders", "generation": 3}
    assert once.add(RECOMMENDATIONS, record) is None
    assert once.add(RECOMMENDATIONS, {"group": "orders", "generation": 4}) is None
    assert "was told 2 times" in str(once.add(RECOMMENDATIONS, record))
    once.begin_anew(RECOMMENDATIONS)
    assert once.add(RECOMMENDATIONS, record) is None
    assert once.recommended == {"orders": 4}


def test_a_step_of_a_movement_is_told_once() -> None:
    once = Once(frozenset({"orders"}))
    assert once.add(MOVEMENTS, EVENT) is None
    assert once.add(MOVEMENTS, EVENT | {"event": "warming"}) is None
    assert "was told 2 times" in str(once.add(MOVEMENTS, EVENT))


def test_what_others_write_of_groups_that_are_no_application_does_not_count() -> None:
    once = Once(frozenset({"orders"}))
    for _ in range(2):
        assert once.add(RECOMMENDATIONS, {"group": "mallory-1", "generation": "x"}) is None
    assert once.told == 0


@pytest.mark.parametrize("members", [0, 2])
def test_a_generation_is_read_off_its_record(members: int) -> None:
    record = generation(17, *(Member(f"m{n}", n) for n in range(members)))
    assert read_generation(record[1]) == (17, members)
    assert read_generation(None) == (0, 0)


def test_a_group_without_a_protocol_has_a_generation_too() -> None:
    value = struct.pack(">hh8sihhqi", 3, 8, b"consumer", 5, -1, -1, 0, 0)
    assert read_generation(value) == (5, 0)


def test_figures_and_their_age_are_read_off_metrics_and_page() -> None:
    text = """\
caughtup_group_committed_offset{cluster="c",group="g",topic="t",partition="2"} 7
caughtup_partition_end_offset{cluster="c",topic="t",partition="2",isolation="read_committed"} 9
caughtup_partition_end_offset{cluster="c",topic="t",partition="2",isolation="read_uncommitted"} 11
caughtup_group_generation{cluster="c",group="orders"} 4
caughtup_snapshot_age_seconds{cluster="c",source="end_offsets"} 2.5
caughtup_offsets_last_poll_timestamp_seconds{cluster="c"} 996
"""
    figures, age = read_metrics(text, 1_000.0)
    assert figures == {
        Figure(COMMITTED, "g", "t", 2): 7,
        Figure(END, "", "t", 2): 9,
        Figure(GENERATION, "orders"): 4,
    }
    assert age == 4.0
    assert read_page({"groups": [{"group": "g", "lag": 2}, {"group": "unknown"}]}) == {
        Figure(GROUP_LAG, "g"): 2
    }


def test_a_page_is_as_old_as_the_oldest_part_of_another_instance() -> None:
    parts = [{"as_of_ms": 9_000}, {"as_of_ms": 7_500}, {"why": "it has not answered yet"}]
    assert read_page_age({"now_ms": 10_000, "instances": parts}) == 2.5
    assert read_page_age({"now_ms": 10_000}) == 0
