"""``caughtup replay`` as its user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from caughtup.agents.main import main
from caughtup.bench.movement.changes import CHANGES, Variety
from caughtup.bench.replay.histories import generated_history, write_histories

pytestmark = pytest.mark.xdist_group("spark")

VARIETY = Variety(standbys=0, unequal=False, tags=False, racks=False)


def replay(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", "--master", "local[1]", *arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--what", "max.warmups=2"], "setting 'max.warmups' is not among"),
        (["--what", "max.warmup.replicas=none"], "'none' is not a number from 1"),
        (["--assignor", "range"], "assignor 'range' is not among"),
    ],
)
def test_what_cannot_be_asked_is_said_before_anything_starts(
    arguments: list[str], words: str
) -> None:
    result = replay("--from", "nowhere", *arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.thorough
def test_a_group_is_replayed_into_lines_a_page_and_a_table(tmp_path: Path) -> None:
    source, page, table = (tmp_path / name for name in ("generations", "page.html", "replay"))
    orders = generated_history("orders", CHANGES[0], VARIETY, 0)
    write_histories(source, [orders, generated_history("bills", CHANGES[0], VARIETY, 1)])
    result = replay(
        *("--from", str(source), "--group", "orders", "--format", "json"),
        *("--what", "max.warmup.replicas=2,8", "--assignor", "high_availability"),
        *(
            "--bytes-per-offset",
            "50",
            "--assignor",
            "minimal_movement",
            "--report",
            str(page),
            "--output",
            str(table),
        ),
    )
    assert result.exit_code == 0, result.output
    lines = {line["setting"]: line for line in map(json.loads, result.stdout.splitlines())}
    assert list(lines) == [
        "recorded",
        *("high_availability", "high_availability, max.warmup.replicas=2"),
        *("high_availability, max.warmup.replicas=8", "minimal_movement"),
        *("minimal_movement, max.warmup.replicas=2", "minimal_movement, max.warmup.replicas=8"),
    ]
    assert {line["group"] for line in lines.values()} == {"orders"}
    recorded, kafkas, ours = (
        lines[name] for name in ("recorded", "high_availability", "minimal_movement")
    )
    assert (recorded["recorded"], recorded["estimated"]) == (True, False)
    for name in ("copies_built", "offsets_copied", "rebalances", "seconds", "cold_hand_overs"):
        assert recorded[name] == kafkas[name], name
    assert all(line["bytes_copied"] == 50 * line["offsets_copied"] for line in lines.values())
    assert (kafkas["copies_built"], ours["copies_built"]) == (36, 12)
    written = pyarrow.parquet.read_table(table, columns=["group", "setting"]).to_pylist()
    assert len(written) == 7 * len(orders)
    assert {row["group"] for row in written} == {"orders"}
    assert page.read_text().count("<svg") == 7
    again = replay("--from", str(tmp_path / "nowhere"))
    assert (again.exit_code, len(again.stderr.splitlines()[-1:])) == (1, 1)
    assert again.stderr.splitlines()[-1].startswith("caughtup: there is no table at ")
