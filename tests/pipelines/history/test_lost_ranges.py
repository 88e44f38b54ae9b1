"""What a batch can't read any more, by where batches end and what logs still have."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.history.lost_ranges import LostRange, batch_offsets, lost_ranges
from caughtup.pipelines.spark.session import Files

pytestmark = pytest.mark.xdist_group("spark")

ORDERS = TopicPartition("orders", 0)
#: Another format, a half file, a file without its source, one of two sources, and numbers that aren't.
BROKEN = (
    "v3\n{}\n{}",
    'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":7',
    'v1\n{"batchWatermarkMs":0}',
    'v1\n{}\n{"orders":{"0":7}}\n{"orders":{"1":7}}',
    'v1\n{}\n{"orders":{"0":"7"}}',
)


def test_a_batchs_offsets_are_read_from_sparks_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"orders":{"0":7}}')
    for number, broken in enumerate(BROKEN, 4):
        (tmp_path / "offsets" / str(number)).write_text(broken)
    files = Files(spark)
    assert batch_offsets(files, str(tmp_path), 3) == {ORDERS: 7}
    assert batch_offsets(files, str(tmp_path), -1) == {}
    for number in range(4, 4 + len(BROKEN)):
        with pytest.raises(CaughtupError, match=f"can't read .*offsets/{number}: ") as caught:
            batch_offsets(files, str(tmp_path), number)
        assert caught.value.code == "bad_checkpoint"


@pytest.mark.parametrize(
    ("until", "first", "expected"),
    [
        (9, 5, []),
        (9, 0, []),
        (9, 7, [(5, 7, "gone")]),
        (9, 20, [(5, 9, "gone")]),
        (3, 0, [(0, 3, "the log ended at 5 and then at 3: the topic was recreated")]),
        (0, 0, []),
        (None, None, [(5, 5, "the topic was deleted")]),
    ],
)
def test_ranges_that_no_batch_can_have(
    until: int | None, first: int | None, expected: list[tuple[int, int, str]]
) -> None:
    ends = {} if until is None else {ORDERS: until}
    firsts = {} if first is None else {ORDERS: first}
    found = lost_ranges({ORDERS: 5}, ends, firsts, "gone")
    assert found == [LostRange(ORDERS, *one) for one in expected]
