"""What the page draws of days: a group's lag, rates and rebalances, read from small tables."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from caughtup.agents.cli.history.charts import SAMPLES, charts, main, series
from caughtup.agents.errors import UserError
from tests.agents.cli.history.tables import (
    BEGAN,
    a_cause,
    a_generation,
    a_lag,
    a_rebalance,
    add,
    at,
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of a partition that is written 10/s and read 9/s, and of a group beside it."""
    root = tmp_path_factory.mktemp("history")
    rows = [a_lag(minute, 0, 60 * minute, end=600 * minute) for minute in range(0, 1_441, 6)]
    add(root, "lag", *rows, a_lag(3, 0, 10**9, "others", end=10**10))
    add(root, "group_generations", a_generation(60, 1, "a"), a_generation(700, 2, "a", "b"))
    return root


def test_a_day_has_lag_and_rates_at_each_sample_and_who_joined(tables: Path) -> None:
    told = charts(str(tables), "orders", BEGAN, at(1_440))
    assert len(told["at_ms"]) == SAMPLES + 1
    assert told["at_ms"][1] - told["at_ms"][0] == 360_000
    assert told["series"]["lag"][-1] == 60 * 1_440
    assert told["series"]["produced_per_second"][:2] == [None, pytest.approx(10)]
    assert told["series"]["committed_per_second"][-1] == pytest.approx(9)
    assert [(mark.text, mark.why) for mark in told["marks"]] == [
        ("generation 1", None),
        ("generation 2", "b joined"),
    ]


def test_rebalances_of_any_group_are_marked_with_their_causes_and_how_sure_they_are(
    tmp_path: Path,
) -> None:
    add(tmp_path, "lag", a_lag(0, 0, 1, end=10))
    add(tmp_path, "group_generations", a_generation(1, 1, "a"), a_generation(20, 3, "a", "b"))
    lost = a_cause("session_timed_out", "b", "likely") | {"client": "b"}
    joined = a_cause("joined", "b") | {"client": "b"}
    add(tmp_path, "rebalances", a_rebalance(10, 2), a_rebalance(20, 3, joined))
    add(tmp_path, "rebalances", a_rebalance(30, 4, lost))
    told = charts(str(tmp_path), "orders", BEGAN, at(60))
    assert [(mark.text, mark.why) for mark in told["marks"]] == [
        ("generation 1", None),
        ("generation 2", None),
        ("generation 2 → 3: b joined", "b joined"),
        (
            "generation 3 → 4: b sent no heartbeat for its session timeout (likely)",
            "b session_timed_out",
        ),
    ]


def test_before_the_first_row_nothing_is_known_and_of_another_group_nothing_is_told(
    tables: Path,
) -> None:
    early = charts(str(tables), "orders", BEGAN - timedelta(days=30), at(1_440))
    assert early["series"]["lag"][0] is None
    assert charts(str(tables), "nobody", BEGAN, at(60)) | {"now_ms": 0} == {
        "now_ms": 0,
        "at_ms": [],
        "series": {},
        "marks": [],
    }


def test_a_rate_needs_the_same_partitions_and_one_that_went_back_is_none() -> None:
    rows = [
        (0, 5, 1, 100, 1, 105),
        (1_000, 5, 1, 90, 1, 125),  # rewound
        (2_000, 5, 2, 900, 2, 905),  # a partition more
        (3_000, None, 0, None, 0, None),
    ]
    assert series(rows) == {
        "lag": [5, 5, 5, None],
        "produced_per_second": [None, 20, None, None],
        "committed_per_second": [None, 0, None, None],
    }


def test_tables_that_are_not_there_are_an_error_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no table lag at"):
        charts(str(tmp_path), "orders", BEGAN, at(60))
    command = [sys.executable, "-m", "caughtup.agents.cli.history.charts"]
    asked = [str(tmp_path), "orders", "7", "1795010550000"]
    ran = subprocess.run([*command, *asked], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert len(ran.stderr.splitlines()) == 1


def test_where_limits_may_not_be_set_it_reads_all_the_same(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("resource.setrlimit", refused)
    main([str(tables), "orders", "1", str(round(at(1_440).timestamp() * 1000))])
    assert json.loads(capfdbinary.readouterr().out)["series"]["lag"][-1] == 60 * 1_440


def test_as_a_program_it_prints_the_charts(tables: Path) -> None:
    command = [sys.executable, "-m", "caughtup.agents.cli.history.charts"]
    asked = [str(tables), "orders", "1", str(round(at(1_440).timestamp() * 1000))]
    ran = subprocess.run([*command, *asked], capture_output=True, check=True)
    assert json.loads(ran.stdout)["series"]["lag"][-1] == 60 * 1_440
