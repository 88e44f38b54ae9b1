"""Spark's queries on ``/metrics``, the page and the terminal."""

from __future__ import annotations

from pathlib import Path

import msgspec

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.cli.lag.rows import group_rows
from caughtup.agents.cli.lag.sources import LookedAt
from caughtup.agents.columns import GROUP_COLUMNS, WHY, cells
from caughtup.agents.process.health import Health
from caughtup.agents.web.page.parts import whole_steps
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks
from tests.support.checkpoints import Checkpoint
from tests.support.groups.records import START_MS
from tests.support.observability.scraping import scrape


def looked(folder: Path) -> ClusterState:
    """Look at a query behind by 30, with a batch in flight, beside one that can't be read."""
    made = Checkpoint(folder / "orders")
    made.batch(3, START_MS - 60_000, {"orders": {0: 70}})
    made.start(4, START_MS - 5_000, {"orders": {0: 90}})
    Checkpoint(folder / "new").begin_at({"orders": {0: 5}})
    broken = Checkpoint(folder / "broken")
    (broken.folder / "metadata").write_bytes(b"")
    state = ClusterState("cluster-1", {})
    for _ in apply_looks(state, CheckpointLooks([str(folder)]).look({}, START_MS), START_MS):
        pass
    state.apply_ends(TopicPartition("orders", 0), EndOffsets(0, 100, 100, START_MS))
    return state


def test_a_query_has_the_series_of_any_group_and_those_of_its_batches(tmp_path: Path) -> None:
    found = scrape(looked(tmp_path))
    assert found["caughtup_group_lag_records"] == {
        ("spark:new", "orders", "0"): 95,
        ("spark:orders", "orders", "0"): 30,
    }
    assert (
        found["caughtup_group_last_commit_timestamp_seconds"]["spark:orders", "orders", "0"]
        == (START_MS - 60_000) / 1000
    )
    name = "caughtup_spark_query"
    assert found[f"{name}_last_batch_timestamp_seconds"] == {
        ("spark:orders",): (START_MS - 60_000) / 1000
    }
    assert found[f"{name}_batch_started_timestamp_seconds"] == {
        ("spark:orders",): (START_MS - 5_000) / 1000
    }
    assert found["caughtup_spark_checkpoint_problems"] == {(f"{tmp_path}/broken", "bad_json"): 1}
    assert found["caughtup_records_refused_total"]["spark checkpoint", "bad_json"] == 1
    assert "caughtup_group_members" not in found


def test_without_checkpoints_nothing_is_said_of_spark() -> None:
    assert not [name for name in scrape(ClusterState("cluster-1", {})) if "spark" in name]


def test_the_page_has_batches_and_problems(tmp_path: Path) -> None:
    steps = whole_steps(looked(tmp_path), Health(ready=True, reader_lag=0), START_MS)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        page = msgspec.json.decode(msgspec.json.encode(done.value))
    new, orders = page["groups"]
    assert (orders["group_type"], orders["lag"]) == ("spark", 30)
    assert (orders["batch"], orders["batch_ms"]) == (3, START_MS - 60_000)
    assert (orders["started_ms"], orders["checkpoint"]) == (START_MS - 5_000, f"{tmp_path}/orders")
    assert not {"batch", "batch_ms", "started_ms", "members"} & new.keys()
    (problem,) = page["checkpoint_problems"]
    assert (problem["checkpoint"], problem["problem"]) == (f"{tmp_path}/broken", "bad_json")
    assert [one["topic"] for one in page["refused"]] == ["spark checkpoint"]


def test_the_terminal_says_when_the_last_batch_was_committed(tmp_path: Path) -> None:
    seen = LookedAt(looked(tmp_path))
    new, orders = group_rows(seen.group_lines(seen.groups()))
    assert cells(GROUP_COLUMNS, orders.line)[-1] == "spark"
    assert (WHY.cell(orders.line)).startswith("; batch 3 was committed ")
    assert WHY.cell(new.line) == ""
    (why,) = seen.unready
    assert why.startswith(f"{tmp_path}/broken of Spark: ")
