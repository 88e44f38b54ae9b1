"""``caughtup bench assign --assignor consumer_groups``: small groups, beside the jars."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from caughtup.bench.assign import consumers
from caughtup.bench.assign.consumers import ConsumerGroupSize
from caughtup.bench.main import bench

pytestmark = pytest.mark.heavy


def test_each_group_is_decided_alike_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "SIZE", ConsumerGroupSize(5, 3, 7))
    arguments = ("assign", "--assignor", "consumer_groups", "--repeats", "2", "--warm-up", "0")
    result = CliRunner().invoke(bench, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(printed) == 6 * 2 * 2 * 3
    assert printed[0]["group"] == "range, the same topics: starts"
    assert printed[-1]["group"] == "range_848, some topics, racks: loses a member"
    assert all(one["same"] and one["shape"] == "5x3x7" for one in printed)
