"""The lines of the lag table are as their structs say."""

from __future__ import annotations

import msgspec

from caughtup.agents.views.lag_lines import partition_lines, task_lines
from caughtup.models.records.lag_lines import Line
from tests.support.streams import (
    GROUP,
    START_MS,
    WARMING,
    cluster_state,
    commit,
    generation,
    known_ends,
    list_ends,
    read,
)


def test_every_field_that_is_written_is_described() -> None:
    state = cluster_state()
    known_ends(state)
    list_ends(state, {0: 9, 1: 9}, at_ms=START_MS, topic="orders-in")
    read(state, generation(1, *WARMING), commit(0, 5, at_ms=START_MS))
    list(state.decide(START_MS + 20_000))
    list(state.assess(GROUP, START_MS + 20_000))
    list(state.watch_copies(GROUP, START_MS + 20_000))
    lines = [*partition_lines(state, GROUP), *task_lines(state, GROUP)]
    assert {line["kind"] for line in lines} == {"partition", "task"}
    for line in lines:
        read_back = msgspec.json.decode(msgspec.json.encode(line), type=Line)
        assert msgspec.to_builtins(read_back) == line
