"""``caughtup bench assign --assignor connect_incremental``: a small group, beside the jar."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from caughtup.bench.assign import connect
from caughtup.bench.assign.connect import ConnectSize
from caughtup.bench.main import bench

pytestmark = pytest.mark.heavy


def test_each_round_is_decided_alike_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "SIZE", ConnectSize(4, 3, 5))
    arguments = ("assign", "--assignor", "connect_incremental", "--repeats", "2", "--warm-up", "0")
    result = CliRunner().invoke(bench, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["group"] for one in printed] == [*connect._CHANGES]
    for one in printed:
        assert one["shape"] == "4x3x5"
        assert one["same"] is True
        assert one["ratio"] == one["ours"]["median_ms"] / one["jar"]["median_ms"]


@pytest.mark.parametrize("option", [("--growth",), ("--shape", "1x1x1x0")])
def test_it_has_no_other_shapes(option: tuple[str, ...]) -> None:
    arguments = ["assign", "--assignor", "connect_incremental", *option]
    result = CliRunner().invoke(bench, arguments)
    assert result.exit_code == 2
    assert "connect_incremental" in result.stderr
