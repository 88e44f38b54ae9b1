"""The cells of ``caughtup lag``: what stands in a column where two figures are of two moments."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.agents.cli.lag.rows import PARTITION_COLUMNS, partition_rows

_END = [column.heading for column in PARTITION_COLUMNS].index("END")


def end(**line: Any) -> str:
    of = {"kind": "partition", "group": "orders", "topic": "in", "partition": 0}
    (row,) = partition_rows([{**of, "has_commit": "committed" in line, **line}])
    return row.cells[_END]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ({"committed": 90, "end_offset": 100}, "100"),
        ({"committed": 100, "end_offset": 100}, "100"),
        ({"end_offset": 100}, "100"),
        ({"committed": 90}, "unknown"),
        # The commit is newer than the look at the log's end.
        ({"committed": 105, "end_offset": 100, "verdict": "ok"}, "≥105"),
        ({"committed": 105, "end_offset": 100}, "≥105"),
        # The commit is older: the log was made anew since.
        ({"committed": 105, "end_offset": 100, "verdict": "rewound"}, "100"),
    ],
)
def test_a_logs_end_is_never_before_a_newer_commit(line: dict[str, Any], shown: str) -> None:
    assert end(**line) == shown
