"""A replay on Spark says what the models say, group for group, and deals the work evenly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.bench.movement.changes import Change, Variety
from caughtup.bench.replay.histories import generated_history, write_histories
from caughtup.models.errors import CaughtupError
from caughtup.models.replay.outcome import ReplayRow, replay_group
from caughtup.models.replay.recorded import RecordedGeneration
from caughtup.models.replay.settings import ReplaySetting, replay_settings
from caughtup.pipelines.generations.schema import REPLAY_ROW
from caughtup.pipelines.replay.job import (
    ReplayUnit,
    collect_rows,
    distribute,
    recorded_generations,
    replay,
    slot_keys,
    write_rows,
)
from caughtup.pipelines.replay.rows import flat_row, read_flat_row

pytestmark = pytest.mark.xdist_group("spark")

VARIETY = Variety(standbys=0, unequal=True, tags=False, racks=False)
SETTINGS: Sequence[ReplaySetting | None] = [
    None,
    *replay_settings(["max.warmup.replicas=4"], ["high_availability", "minimal_movement"]),
]


def history(group: str, tasks: int = 10) -> list[RecordedGeneration]:
    return generated_history(group, Change(2, 3, tasks), VARIETY, tasks)


def by_place(rows: Sequence[ReplayRow]) -> list[ReplayRow]:
    return sorted(rows, key=lambda row: (row.group, row.setting, row.as_of_ms))


def test_spark_says_what_the_models_say(spark: SparkSession, tmp_path: Path) -> None:
    groups = [history("orders"), history("payments", 20), history("bills", 5)]
    groups[2][0] = replace(groups[2][0], scenario={"name": "broken"}, doubts=("everything",))
    table = tmp_path / "generations"
    write_histories(table, groups)
    write_histories(table, groups[:1])  # as two runs at once would

    rows = replay(spark, recorded_generations(spark, str(table)), SETTINGS)
    found = write_rows(rows, str(tmp_path / "replay"))

    expected = [row for group in groups for row in replay_group(group, SETTINGS)]
    collected = collect_rows(found)
    assert [replace(row, decision=None) for row in by_place(expected)] == collected
    assert {row.error for row in collected if row.group == "bills" and row.generation == 1} == {
        "missing_field: tasks: is missing"
    }
    decisions = {
        (row["group"], row["setting"], row["generation"]): row["decision"]
        for row in found.select("group", "setting", "generation", "decision").collect()
    }
    assert len(decisions) == len(expected)
    for row in expected:
        text = decisions[row.group, row.setting, row.generation]
        assert (text and msgspec.json.decode(text)) == row.decision

    with pytest.raises(CaughtupError, match=r"output_exists: .*replay is there already"):
        write_rows(rows, str(tmp_path / "replay"))
    only = recorded_generations(spark, str(table), ["payments"])
    assert {row["group"] for row in only.select("group").collect()} == {"payments"}


def test_a_table_that_is_none_is_named_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CaughtupError, match=r"^no_table: there is no table at .*nowhere$"):
        recorded_generations(spark, str(tmp_path / "nowhere"))
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(CaughtupError, match=r"^bad_table: can't read .*other: [^\n]+$"):
        recorded_generations(spark, str(other))
    pyarrow.parquet.write_table(pyarrow.table({"group": ["x"]}), other / "x.parquet")
    with pytest.raises(CaughtupError, match=r"^bad_table: .* has no column as_of$"):
        recorded_generations(spark, str(other))


def test_a_table_with_a_broken_file_is_named_in_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_histories(tmp_path, [history("orders")])
    (file,) = tmp_path.rglob("*.parquet")
    content = file.read_bytes()
    # A footer that can be read, for columns that can't.
    file.with_name("broken.parquet").write_bytes(
        b"PAR1" + b"\xff" * (len(content) // 2) + content[4 + len(content) // 2 :]
    )
    with pytest.raises(CaughtupError, match=r"^bad_table: can't read [^\n]+$"):
        replay(spark, recorded_generations(spark, str(tmp_path)), [None])


def test_each_slot_is_a_partition_of_its_own(spark: SparkSession) -> None:
    slots = 7
    keys = spark.createDataFrame([(key,) for key in slot_keys(spark, slots)], "slot bigint")
    placed = keys.repartition(slots, "slot").select(F.spark_partition_id().alias("place"))
    assert sorted(row.place for row in placed.collect()) == list(range(slots))


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=60), st.integers(1, 9))
def test_no_slot_has_more_than_its_share_and_a_unit(costs: list[int], slots: int) -> None:
    units = [ReplayUnit(cost, f"group-{number}", number % 3) for number, cost in enumerate(costs)]
    loads: dict[int, int] = defaultdict(int)
    dealt = []
    for slot, unit in distribute(units, slots):
        assert 0 <= slot < slots
        loads[slot] += unit.cost
        dealt.append(unit)
    assert sorted(dealt) == sorted(units)
    assert [unit.cost for unit in dealt] == sorted(costs, reverse=True)
    assert max(loads.values()) <= sum(costs) / slots + max(costs)


def test_a_row_survives_the_table_but_for_its_decision() -> None:
    for row in replay_group(history("orders"), SETTINGS):
        written = flat_row(row)
        assert set(written) == set(REPLAY_ROW.names)
        assert read_flat_row(written) == replace(row, decision=None)
