"""docs/history_questions: each cell as it stands there, every reader's answers the same."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from tests.agents.cli.history.tables import (
    a_cause,
    a_commit,
    a_history,
    a_lag,
    a_rebalance,
    a_step,
    add,
    at,
)
from tests.support.documented import ROOT, blocks
from tests.support.pipelines.by_hand import GROUPS, records_of, write_batch
from tests.support.pipelines.delta import new_tables

PAGE = ROOT / "docs" / "history_questions.md"
FILES = PAGE.with_suffix("")
#: The day that the page asks for.
DAY = ("--since", "2026-11-17", "--until", "2026-11-18")
QUESTIONS = ("lag", "deployments", "commits", "rebalances", "warm-ups")
MINUTES_A_DAY = 24 * 60
Row = dict[str, Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``history``: an hour of a group, and what no answer may have."""
    root = tmp_path_factory.mktemp("readers")
    tables = a_history(root / "history")
    before, after = -MINUTES_A_DAY, MINUTES_A_DAY
    add(tables, "lag", a_lag(before, 2, 7), a_lag(after, 0, 9999), a_lag(50, 2, 3))
    lost = {**a_commit(61, "orders"), "present": False}
    add(tables, "commits", lost, a_commit(before, "orders"), a_commit(after, "returns"))
    other = [a_rebalance(1, 6, a_cause("joined", "a")), a_rebalance(2, 7, a_cause("left", "a"))]
    broken = {**a_rebalance(3, 8), "error": "can't be read", "generation": None}
    add(tables, "rebalances", *({**one, "group": "payments"} for one in (*other, broken)))
    add(tables, "rebalances", a_rebalance(after, 9, a_cause("joined", "d")))
    decision = {"present": True, "generation": 9, "copies": 0, "kafka_copies": 20}
    add(
        tables,
        "decisions",
        {**decision, "group": "payments", "as_of": at(7), "seconds": 1.5, "kafka_seconds": 60.0},
        {**decision, "group": "returns", "as_of": at(8), "present": False},
        {**decision, "group": "orders", "as_of": at(after)},
    )
    elsewhere = {"group": "payments", "plan": "kafka"}
    add(
        tables,
        "movements",
        {**a_step(4, "planned", "0_1", 9), **elsewhere},
        {**a_step(4.5, "warming", "0_1", 10), **elsewhere},
        {**a_step(6, "promoted", "0_1", 11), **elsewhere},
        {**a_step(7, "promoted", "0_1", 12), "task": None},
    )
    return root


def section(reader: str, language: str) -> list[str]:
    """Return the blocks below a reader's heading."""
    (text,) = re.findall(
        rf"^## {reader}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return blocks(language, text)


def cells(name: str) -> list[str]:
    """Return the cells of a file beside the page, without what stands before the first."""
    return re.split(r"^(?:#|--) %%\n", (FILES / name).read_text(), flags=re.MULTILINE)[1:]


def by_question(texts: list[str]) -> dict[str, str]:
    """Return blocks by what their first line says in a comment."""
    found = {text.partition("\n")[0].lstrip("#- "): text for text in texts}
    assert tuple(found) == QUESTIONS
    return found


def shown(text: str, names: dict[str, Any]) -> Any:
    """Run a block of Python as a notebook does, and return what its last line shows."""
    tree = ast.parse(text)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.parse("shown = 0").body[0]
        tree.body[-1].value = last.value  # type: ignore[attr-defined]
    names["shown"] = None
    exec(compile(ast.fix_missing_locations(tree), str(PAGE), "exec"), names)  # noqa: S102
    return names["shown"]


def rows_of(answer: Any) -> list[Row]:
    """Return the rows of what a reader shows: of polars, DuckDB, Arrow, pandas or Spark."""
    if isinstance(answer, pa.Table):
        found = answer.to_pylist()
    elif hasattr(answer, "to_dicts"):
        found = answer.to_dicts()
    elif hasattr(answer, "to_arrow_table"):
        found = answer.to_arrow_table().to_pylist()
    else:
        arrow = answer.toArrow() if hasattr(answer, "toArrow") else pa.Table.from_pandas(answer)
        found = arrow.to_pylist()
    return [{name: plain(v) for name, v in row.items() if name[:2] != "__"} for row in found]


def plain(value: Any) -> Any:
    """Return a value that others can be compared with: moments in ms, numbers as floats."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return None if math.isnan(value) else float(value)
    return value


def commanded(tables: Path, *arguments: str) -> list[Row]:
    """Return what the command says, its moments in ms."""
    words = ["history", *arguments, "--tables", str(tables), "--format", "json"]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
    rows = [json.loads(line) for line in ran.output.splitlines()]
    moment = re.compile(r"\d{4}-\d\d-\d\dT.*Z")
    return [
        {
            name: plain(datetime.fromisoformat(v) if moment.fullmatch(str(v)) else v)
            for name, v in row.items()
        }
        for row in rows
    ]


def hold_equal(place: Path, answers: dict[str, list[Row]]) -> None:
    """See that a reader's answers are the command's, in the columns that the reader has."""
    for question, found in answers.items():
        group = ("--group", "orders") if question == "lag" else ()
        expected = commanded(place / "history", question, *DAY, *group)
        names = sorted(found[0])
        assert len(names) > 2
        assert found == [{name: row[name] for name in found[0]} for row in expected], question
        assert names == COLUMNS.setdefault(question, names), "of all readers the same columns"


#: Of each question the columns of the reader that was asked first.
COLUMNS: dict[str, list[str]] = {}


@pytest.mark.parametrize("reader", ["polars", "pandas"])
def test_a_reader_of_python_answers_as_the_command_does(
    place: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.chdir(place)
    names: dict[str, Any] = {}
    opening, *asking = cells(f"with_{reader}.py")
    shown(opening, names)
    found = by_question(asking)
    hold_equal(place, {one: rows_of(shown(text, names)) for one, text in found.items()})


def test_duckdb_answers_as_the_command_does(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    names: dict[str, Any] = {}
    (opening,) = section("DuckDB", "python")
    shown(opening, names)
    found = by_question(cells("duckdb.sql"))
    hold_equal(place, {one: rows_of(names["connection"].sql(q)) for one, q in found.items()})


def test_there_is_something_to_find_and_something_to_leave_out(place: Path) -> None:
    tables = place / "history"
    lag = [row["lag"] for row in commanded(tables, "lag", "--group", "orders", *DAY)]
    assert (lag[0], lag[16], lag[-1]) == (7, 117, 43)
    assert [row["generation"] for row in commanded(tables, "deployments", *DAY)] == [5, 9, 2]
    caused = commanded(tables, "rebalances", *DAY)
    assert [(row["group"], row["rebalances"]) for row in caused].count(("payments", 1)) == 2
    slow = [(row["group"], row["seconds"]) for row in commanded(tables, "warm-ups", *DAY)]
    assert slow == [("orders", 1200), ("orders", 360), ("payments", 90)]


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``history``: four batches as the job writes them."""
    root = tmp_path_factory.mktemp("batches")
    for batch in range(4):
        write_batch(new_tables(root / "history"), batch, records_of(batch))
    return root


def offsets(rows: list[Row]) -> list[float]:
    return sorted(row["log_offset"] for row in rows)


def test_each_reader_travels_to_before_a_batch(
    batches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(batches)
    names: dict[str, Any] = {}
    opening, *reading = section("Before a batch", "python")
    shown("import duckdb, polars as pl", names)
    shown(opening, names)
    assert names["version"] == 2
    before = commanded(batches / "history", "SELECT * FROM commits", "--at", "2")
    assert offsets(before) == list(range(2 * len(GROUPS)))
    assert len(reading) == 3
    for text in reading:
        assert offsets(rows_of(shown(text, names))) == offsets(before), text


@pytest.fixture
def spark(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Start a Spark that knows nothing of caughtup, and return what runs a block's statements."""
    # PySpark takes a second to import, and the other tests here don't need it.
    from tests.support.pipelines.delta_spark import delta_session

    monkeypatch.chdir(place)
    with delta_session() as session:
        yield lambda text: [session.sql(one) for one in text.split(";") if one.strip()][-1]


@pytest.mark.thorough
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
def test_spark_answers_as_the_command_does_and_travels(
    place: Path, batches: Path, spark: Callable[[str], Any]
) -> None:
    opening, *asking = cells("spark.sql")
    spark(opening)
    hold_equal(place, {one: rows_of(spark(q)) for one, q in by_question(asking).items()})
    (text,) = section("Before a batch", "sql")
    before = rows_of(spark(text.replace("history/", f"{batches}/history/")))
    assert offsets(before) == list(range(2 * len(GROUPS)))
