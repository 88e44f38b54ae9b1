"""``caughtup check`` of the checkpoints of Spark's queries, which need no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.agents.cli import check
from caughtup.agents.cli.check import Finding, run_checks
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from tests.support.checkpoints import Checkpoint

NOW_MS = 1_700_000_100_000


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_: Settings) -> None:
        raise UserError("no answer")

    monkeypatch.setattr(check, "connect", connect)


def findings(*entries: Path) -> list[Finding]:
    first, *found = run_checks(Settings(spark_checkpoints=tuple(map(str, entries))))
    assert first == Finding("connect", False, "no answer")
    return found


def test_each_checkpoint_that_can_not_be_read_is_a_line(tmp_path: Path) -> None:
    for name in ("orders", "broken", "payments"):
        made = Checkpoint(tmp_path / "queries" / name)
        made.batch(0, NOW_MS, {"orders": {0: 10}})
    (tmp_path / "queries/broken/metadata").write_text("{")
    found = findings(tmp_path / "queries", tmp_path / "nowhere")
    assert [(one.check, one.ok) for one in found] == [
        (f"checkpoint {tmp_path}/nowhere", False),
        (f"checkpoint {tmp_path}/queries/broken", False),
        ("spark_checkpoints", True),
    ]
    assert [one.detail.partition(":")[0] for one in found[:2]] == ["not_found", "bad_json"]
    assert found[2].detail == "spark:orders, spark:payments"


def test_a_folder_without_checkpoints_is_as_it_may_be(tmp_path: Path) -> None:
    assert findings(tmp_path) == [
        Finding("spark_checkpoints", True, "no checkpoint of a query that reads Kafka yet")
    ]
    assert findings() == []
