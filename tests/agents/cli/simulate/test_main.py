"""``caughtup simulate`` and ``safe`` on a group as one look at a cluster shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli.simulate.options import changed_configs
from caughtup.agents.main import main
from tests.support.groups.records import GROUP
from tests.support.states import NOW_MS, everything


@pytest.fixture(autouse=True)
def _a_look_at_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "caughtup.agents.cli.simulate.options"
    monkeypatch.setattr(f"{options}.read_snapshot", lambda *_: everything())
    monkeypatch.setattr(f"{options}.now_ms", lambda: NOW_MS)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_plan_is_told_in_figures_and_drawn() -> None:
    ran = run("simulate", GROUP, "--kill", "a", "--lose-state", "--restore-rate", "1000..5000")
    assert ran.exit_code == 0, ran.output
    heading, row, *rest = ran.output.splitlines()
    assert heading.split("  ")[0] == "PLAYED"
    assert row.startswith("kill a ")
    assert re.search(r"\d+ s – \d+ s", row)
    assert any(re.fullmatch(r"0_0 \.+b+B+", line) for line in rest)
    assert "  A = a" in rest


def test_without_a_rate_times_are_least_ones() -> None:
    ran = run("simulate", GROUP, "--kill", "a", "--lose-state")
    assert "≥ 45 s" in ran.output
    assert "--restore-rate says how fast a thread restores" in ran.output


def test_several_assignors_stand_side_by_side_and_nothing_is_drawn() -> None:
    assignors = ("--assignor", "high_availability", "--assignor", "minimal_movement")
    ran = run("simulate", GROUP, "--add", "1", *assignors, "--restore-rate", "1000")
    assert [line.split("  ")[0] for line in ran.output.splitlines()] == [
        "PLAYED",
        "+1, high_availability",
        "+1, minimal_movement",
    ]


def test_json_has_every_span() -> None:
    ran = run(
        "simulate", GROUP, "--restart", "rolling", "--restore-rate", "1000", "--format", "json"
    )
    (line,) = map(json.loads, ran.output.splitlines())
    assert line["played"] == "rolling restart"
    still = line["slow"]["still_ms"]
    processed = [span for span in line["slow"]["spans"] if span[2] == "processing"]
    for task in ("0_0", "0_1"):
        ran_ms = sum(end - start for name, _, _, start, end in processed if name == task)
        until_ms = max(end for *_, end in line["slow"]["spans"])
        assert ran_ms + still[task] == until_ms


def test_the_page_has_the_names_as_text_and_nothing_that_ends_its_script(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = run("simulate", GROUP, "--add", "1", "--html", str(page))
    assert ran.exit_code == 0
    text = page.read_text()
    assert text.count("</script>") == 2
    assert "{{" not in text
    data = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
    assert data[0]["clients"] == ["a", "b", "new-1"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["simulate", GROUP], 2, "say what is to happen: --add, --remove, --kill or --restart"),
        (["simulate", "nobody", "--add", "1"], 3, "nobody is no Kafka Streams application"),
        (["simulate", GROUP, "--kill", "x"], 3, "'x' is not among a, b"),
        (["simulate", GROUP, "--add", "1", "--set", "num.standbys=1"], 3, "is not known"),
        (["simulate", GROUP, "--add", "1", "--set", "x"], 2, "write NAME=VALUE"),
        (["simulate", GROUP, "--add", "1", "--restore-rate", "-1"], 2, "is no rate"),
        (["safe", GROUP, "--stop", "x"], 3, "'x' is not among a, b"),
    ],
)
def test_what_can_not_be_played_is_told_in_one_line(
    arguments: list[str], code: int, said: str
) -> None:
    ran = run(*arguments)
    assert ran.exit_code == code
    assert said in ran.output
    assert len([line for line in ran.output.splitlines() if "caughtup:" in line]) <= 1


def test_safe_exits_by_its_answer() -> None:
    yes = run("safe", GROUP, "--stop", "b", "--restore-rate", "1000")
    assert (yes.exit_code, yes.output) == (0, "safe: no task stands still for longer than 0.0 s\n")
    no = run("safe", GROUP, "--stop", "a", "--restore-rate", "1000", "--format", "json")
    assert no.exit_code == 1
    assert json.loads(no.output)["task"] in {"0_0", "0_1"}


def test_configs_are_read_as_kafka_has_them() -> None:
    assert changed_configs(["num.standby.replicas=1", "rack.aware.assignment.tags=zone,rack"]) == (
        ("num.standby.replicas", 1),
        ("rack.aware.assignment.tags", ["zone", "rack"]),
    )
