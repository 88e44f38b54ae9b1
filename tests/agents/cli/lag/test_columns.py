"""The cells of ``caughtup lag``: what stands in a column where two figures are of two moments."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.agents.cli.lag.rows import partition_rows
from caughtup.agents.columns import PARTITION_COLUMNS, cells
from caughtup.models.records.lag_lines import PartitionLine

_END = [column.heading for column in PARTITION_COLUMNS].index("END")


def end(**line: Any) -> str:
    found = PartitionLine("orders", "in", 0, "committed" in line, **line)
    (row,) = partition_rows([found])
    return cells(PARTITION_COLUMNS, row.line)[_END]


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
