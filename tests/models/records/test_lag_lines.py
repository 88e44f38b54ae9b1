"""The lines of the lag table are as their structs say."""

from __future__ import annotations

import msgspec

from caughtup.models.records.keys import decode_line
from caughtup.models.records.lag_lines import (
    CopyLine,
    Line,
    PartitionLine,
    WrittenLines,
    encode,
    mark,
)
from caughtup.models.shown.lag import copy_lines, partition_lines
from tests.support.groups.records import GROUP, START_MS, commit
from tests.support.groups.streams import WARMING, generation
from tests.support.states import list_ends, read, state_with_ends


def test_lines_keep_to_the_bounds_of_their_fields() -> None:
    state = state_with_ends()
    list_ends(state, {0: 9, 1: 9}, at_ms=START_MS, topic="orders-in")
    read(state, generation(1, *WARMING), commit(0, 5, at_ms=START_MS))
    list(state.decide(START_MS + 20_000))
    list(state.assess(GROUP, START_MS + 20_000))
    list(state.watch_copies(GROUP, START_MS + 20_000))
    lines = [*partition_lines(state, GROUP), *copy_lines(state, GROUP)]
    assert {type(line) for line in lines} == {PartitionLine, CopyLine}
    for line in lines:
        assert msgspec.json.decode(encode(line), type=Line) == line
        assert decode_line(line.key) == GROUP


def test_what_a_group_has_on_the_topic_is_kept_until_it_is_dropped() -> None:
    lines = WrittenLines()
    marks = {b'["billing","orders",%d]' % number: mark(b"%d" % number) for number in range(100)}
    with lines.of("billing") as written, lines.of("billing") as the_same:
        written.update(marks)
        assert the_same is written
    with lines.of("shipping") as written:
        assert written == {}
    assert lines.groups() == {"billing"}
    lines.add_groups({"billing": {b"[]": 1}, "audit": {b"[]": -(1 << 63)}, "gone": {}})
    assert lines.groups() == {"billing", "audit"}
    with lines.of("billing") as of_billing, lines.of("audit") as of_audit:
        assert (of_billing, of_audit) == (marks, {b"[]": -(1 << 63)})
        of_audit.clear()
    assert lines.groups() == {"billing"}
    lines.drop("billing")
    assert lines.groups() == set()


def test_a_value_of_which_only_the_age_differs_has_the_same_mark() -> None:
    value = b'{"group":"billing","lag":4,"lag_seconds":%s,"why":"late"}'
    assert mark(value % b"1.5") == mark(value % b"70")
    assert mark(value % b"1.5") != mark((value % b"1.5").replace(b"late", b"later"))
