"""The lines of the lag table are as their structs say."""

from __future__ import annotations

import msgspec

from caughtup.models.records.keys import decode_line
from caughtup.models.records.lag_lines import CopyLine, Line, PartitionLine, encode
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
