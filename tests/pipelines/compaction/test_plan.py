"""Which files become one: never the newest batch's, never a large one, and it comes to an end."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.pipelines.compaction.plan import (
    BatchRange,
    FolderCompaction,
    batches,
    is_due,
    newest_batch,
    plan_folder,
)

FOLDER = "lag/date=2026-11-20/group_bucket=2"
TODAY = date(2026, 11, 22)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("batch-0000000012.parquet", BatchRange(12, 12)),
        ("batch-0000000012-1.parquet", BatchRange(12, 12)),
        ("compacted-0000000003-0000000011-000.parquet", BatchRange(3, 11)),
        ("part-00000-0b0c-c000.snappy.parquet", None),
        ("batch-0000000012.parquet.tmp", None),
        (".batch-0000000012.parquet.crc", None),
        ("batch-x.parquet", None),
        ("batch-" + "9" * 5_000 + ".parquet", None),
    ],
)
def test_a_files_batches_are_in_its_name(name: str, found: BatchRange | None) -> None:
    assert batches(name) == found


@pytest.mark.parametrize(
    ("folder", "keep_days", "due"),
    [
        ("date=2026-11-22", 1, False),
        ("date=2026-11-21", 1, True),
        ("date=2026-11-21", 2, False),
        ("date=2026-11-22", 0, True),
        ("date=2026-11-23", 0, False),
        ("date=__HIVE_DEFAULT_PARTITION__", 0, False),
        ("2020-01-01", 0, False),
    ],
)
def test_the_last_days_are_left_alone(folder: str, keep_days: int, due: bool) -> None:
    assert is_due(folder, TODAY, keep_days) is due


def test_small_files_become_one_whose_name_tells_their_batches() -> None:
    sizes = {"batch-0000000003.parquet": 10, "batch-0000000007.parquet": 20, "notes.txt": 5}
    assert plan_folder(FOLDER, sizes, newest=9, target_bytes=100) == FolderCompaction(
        FOLDER,
        {"batch-0000000003.parquet": 10, "batch-0000000007.parquet": 20},
        1,
        "compacted-0000000003-0000000007",
        0,
    )


def test_of_the_newest_batch_no_file_is_taken() -> None:
    sizes = {"batch-0000000003.parquet": 10, "batch-0000000007.parquet": 20}
    assert plan_folder(FOLDER, sizes, newest=7, target_bytes=100) is None


def test_what_is_half_as_large_as_it_shall_be_stays() -> None:
    sizes = {f"batch-{number}.parquet": size for number, size in enumerate((50, 49, 49, 80))}
    work = plan_folder(FOLDER, sizes, newest=9, target_bytes=100)
    assert work is not None
    assert sorted(work.old) == ["batch-1.parquet", "batch-2.parquet"]


def test_a_name_is_never_given_twice() -> None:
    sizes = {
        "compacted-0000000003-0000000007-000.parquet": 99,
        "compacted-0000000003-0000000007-001.parquet": 10,
        "compacted-0000000003-0000000007-002.parquet": 10,
    }
    work = plan_folder(FOLDER, sizes, newest=9, target_bytes=100)
    assert work is not None
    assert work.name(0) == "compacted-0000000003-0000000007-003.parquet"


NAMES = st.one_of(
    st.builds("batch-{:010}.parquet".format, st.integers(0, 9)),
    st.builds("batch-{:010}-{}.parquet".format, st.integers(0, 9), st.integers(1, 3)),
    st.builds(
        lambda first, more, number: f"compacted-{first:010}-{first + more:010}-{number:03}.parquet",
        *(st.integers(0, 5), st.integers(0, 4), st.integers(0, 3)),
    ),
    st.just("part-00000.parquet"),
)


@given(st.dictionaries(NAMES, st.integers(1, 120)), st.integers(1, 100), st.data())
def test_compacting_again_and_again_ends_and_leaves_every_other_file(
    sizes: dict[str, int], target: int, data: st.DataObject
) -> None:
    newest = newest_batch(list(sizes))
    spared = {name: size for name, size in sizes.items() if f"-{newest:010}" in name}
    total, runs = sum(sizes.values()), 0
    while work := plan_folder(FOLDER, sizes, newest, target):
        assert work.old.items() <= sizes.items()
        assert not work.old.keys() & spared.keys()
        written = data.draw(st.integers(1, work.most))
        names = [work.name(number) for number in range(written)]
        assert not sizes.keys() & set(names)
        covered = [found for name in work.old if (found := batches(name))]
        for name in names:
            first, last = min(one.first for one in covered), max(one.last for one in covered)
            assert batches(name) == (first, last)
        assert written < len(work.old)
        share, left = divmod(work.bytes, written)
        sizes = {name: size for name, size in sizes.items() if name not in work.old}
        sizes |= dict.fromkeys(names, share)
        sizes[names[0]] += left
        runs += 1
    assert sum(sizes.values()) == total
    assert spared.items() <= sizes.items()
    assert newest_batch(list(sizes)) == newest
