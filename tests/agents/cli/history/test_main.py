"""``caughtup history`` on tables whose answers can be counted by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.main import main
from tests.agents.cli.history.tables import a_history, a_lag, add, at

HOUR = ("--since", "2026-11-17T08:00", "--until", "2026-11-17T09:00")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_history(tmp_path_factory.mktemp("history"))


def run(tables: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["history", "--tables", str(tables), *arguments])


def asked(tables: Path, *arguments: str) -> list[dict[str, Any]]:
    result = run(tables, *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


def test_without_a_question_it_says_what_there_is(tables: Path) -> None:
    result = run(tables)
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split()[1:] for line in result.output.splitlines() if line}
    assert rows["lag"][0] == "5"
    assert rows["commits"][0] == "66"
    assert "what caused rebalances, and how sure that is" in result.output


def test_the_lag_of_a_group_is_that_of_each_partition_s_last_row(tables: Path) -> None:
    rows = asked(tables, "lag", "--group", "orders", *HOUR)
    by_time = {row["moment"]: row for row in rows}
    assert by_time["2026-11-17T08:00:00.000Z"]["lag"] == 110
    assert by_time["2026-11-17T08:30:00.000Z"]["lag"] == 140
    last = by_time["2026-11-17T09:00:00.000Z"]
    assert (last["lag"], last["partitions"], last["worst_partition"]) == (40, 2, "orders-in-0")


def test_the_last_moment_is_until_when_however_the_time_is_divided(tables: Path) -> None:
    for until in ("2026-11-17T08:30:00.000007", "2026-11-17T08:59:59.999983"):
        time = ("--since", "2026-11-17T08:00", "--until", until)
        last = asked(tables, "lag", "--group", "orders", *time)[-1]
        (row,) = asked(tables, f"SELECT TIMESTAMPTZ '{until}Z' AS moment")
        assert last["moment"] == row["moment"]


def test_it_is_asked_as_it_was_before_a_batch(tables: Path) -> None:
    rows = asked(tables, "lag", "--group", "orders", *HOUR, "--at", "0")
    assert rows[-1]["lag"] == 110
    assert asked(tables, "SELECT count(*) AS n FROM lag", "--at", "0") == [{"n": 3}]


def test_rebalances_have_causes_and_how_sure_they_are(tables: Path) -> None:
    rows = asked(tables, "rebalances", *HOUR)
    assert [(row["cause"], row["about"], row["sure"], row["rebalances"]) for row in rows] == [
        ("joined", "c", "certain", 2),
        ("left", "c", "likely", 1),
        ("requested", "", "possible", 1),
        ("topic_grew", "orders-in", "certain", 1),
        ("unknown", "", "unknown", 1),
    ]
    assert rows[0]["last"] == "2026-11-17T08:05:00.000Z"
    assert rows[1]["why"] == "c left"


def test_the_most_expensive_deployment_comes_first(tables: Path) -> None:
    rows = asked(tables, "deployments", *HOUR)
    assert [(row["generation"], row["copies"], row["kafka_copies"]) for row in rows] == [
        (5, 6, 20),
        (2, 6, 18),
    ]


def test_commits_are_a_second_by_group(tables: Path) -> None:
    rows = asked(tables, "commits", *HOUR)
    assert [(row["group"], row["commits"], row["per_second"]) for row in rows] == [
        ("orders", 60, 0.017),
        ("payments", 6, 0.002),
    ]
    (row,) = asked(tables, "commits", "--group", "payments", *HOUR)
    assert row["partitions"] == 1


def test_a_warm_up_lasts_from_its_beginning_to_its_promotion(tables: Path) -> None:
    rows = asked(tables, "warm-ups", *HOUR)
    assert [(row["task"], row["seconds"]) for row in rows[:2]] == [("0_2", 1200), ("0_1", 360)]


def test_a_table_a_file_of_csv_and_bars_say_the_same(tables: Path) -> None:
    table = run(tables, "commits", *HOUR).output
    assert table.splitlines()[0].split()[:2] == ["group", "commits"]
    (heading, first, _) = csv.reader(
        io.StringIO(run(tables, "commits", *HOUR, "--format", "csv").output)
    )
    assert dict(zip(heading, first, strict=True))["commits"] == "60"
    drawn = run(tables, "commits", *HOUR, "--format", "plot").output.splitlines()
    assert drawn[0] == "per_second:"
    assert drawn[1].startswith("orders")
    assert drawn[1].count("█") > 8 * drawn[2].count("█") > 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("nonsense",), 2, "the questions are lag, deployments"),
        (("lag",), 2, "name it with --group"),
        (("commits", "--since", "yesterday"), 2, "'yesterday' is not a time"),
        (("commits", "--since", "2026-11-18", "--until", "2026-11-17"), 2, "must be before"),
        (("SELECT * FROM nowhere",), 1, "nowhere"),
        (("SELECT * FROM reassignments",), 1, "no table reassignments at"),
        (("SELEKT * FROM lag",), 1, "syntax error"),
        (("SELECT * FROM read_csv('/etc/passwd')",), 1, "disabled"),
        (("SELECT * FROM lag", "--at", "99"), 1, "can't read"),
        (("SELECT topic FROM lag", "--format", "plot"), 1, "cannot draw the answer"),
        (("commits", "--since", "2020-01-01", "--until", "2020-01-02"), 3, ""),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    tables: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    result = run(tables, *arguments)
    assert (result.exit_code, said in result.output) == (status, True), result.output
    assert "Traceback" not in result.output
    if status == 1:
        assert len(result.output.strip().splitlines()) == 1


def test_a_place_without_tables_is_said(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "no table of a history" in result.output


def test_a_name_with_an_escape_is_printed_as_text(tmp_path: Path) -> None:
    add(tmp_path, "lag", a_lag(0, 0, 10, "evil\x1b[2J"))
    output = run(tmp_path, 'SELECT "group" FROM lag').output
    assert "\x1b" not in output
    assert "evil\\x1b[2J" in output
    assert at(0).isoformat()
