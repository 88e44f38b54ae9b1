"""``caughtup bench fleet`` with no broker: files of raw records, and what is refused."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from caughtup.bench.fleet import count_records
from caughtup.demo.fleet.offset_commits import RawRecord, commit_key, commit_value
from caughtup.demo.fleet.raw_records import SCHEMA, RawRecordFiles

SMALL = ["--groups", "6", "--partitions", "4", "--minutes", "30", "--makes", "6"]


def test_files_hold_what_the_figures_say_with_offsets_that_follow_each_other(
    tmp_path: Path,
) -> None:
    output = tmp_path / "generated"
    arguments = ["bench", "fleet", *SMALL, "--deleted", "50", "--output", str(output)]
    result = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    (path,) = output.iterdir()
    assert path.name == "generated-records-00000.parquet"
    table = pyarrow.parquet.read_table(path)
    assert table.schema.equals(SCHEMA)
    columns = table.to_pydict()
    assert figures["records"] == table.num_rows
    assert figures["tombstones"] == columns["value"].count(None) > 0
    assert figures["commits"] + figures["group_records"] == figures["records"]
    assert figures["errors"] == 0
    offsets: dict[int, list[int]] = defaultdict(list)
    for partition, offset in zip(columns["partition"], columns["offset"], strict=True):
        offsets[partition].append(offset)
    assert all(found == list(range(len(found))) for found in offsets.values())
    assert columns["timestamp_ms"] == sorted(columns["timestamp_ms"])

    again = CliRunner().invoke(main, arguments)
    assert again.exit_code != 0
    assert again.output.splitlines()[-1].endswith("is there already")


def test_files_are_begun_anew_where_one_is_full(tmp_path: Path) -> None:
    records = [RawRecord(0, n, n, b"key", None) for n in range(200_000)]
    with RawRecordFiles(tmp_path / "out", rows_a_file=70_000) as files:
        for start in range(0, len(records), 10_000):
            files.add(records[start : start + 10_000])
    found = sorted((tmp_path / "out").iterdir())
    tables = [pyarrow.parquet.read_table(path) for path in found]
    assert [table.num_rows for table in tables] == [70_000, 70_000, 60_000]
    assert pyarrow.concat_tables(tables)["offset"].to_pylist() == list(range(200_000))


def test_what_cannot_be_decoded_is_counted_as_an_error() -> None:
    good = RawRecord(0, 0, 0, commit_key("generated", 0), commit_value(1, 2))
    bad = RawRecord(0, 1, 0, commit_key("generated", 1), b"\0\4")
    other = RawRecord(0, 2, 0, b"\0\x63", None)
    assert count_records([[good, bad], [other]]) == {
        "records": 3,
        "bytes": sum(len(r.key or b"") + len(r.value or b"") for r in (good, bad, other)),
        "commits": 2,
        "group_records": 0,
        "tombstones": 1,
        "others": 1,
        "errors": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "protocol", "--groups", "1001"], "--by protocol plays 1,000 groups at most"),
        (
            ["--looks", "30", "--by", "protocol", "--groups", "5"],
            "--looks needs --by codecs without --output",
        ),
        (
            ["--minutes", "1", "--interval", "61"],
            "--interval is longer than --minutes: no group would commit",
        ),
        (
            ["--hold", "--output", "somewhere"],
            "--hold: with --output and --by codecs there is no broker",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["bench", "fleet", *arguments])
    assert result.exit_code != 0
    assert message in result.output
