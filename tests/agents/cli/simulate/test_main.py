"""``caughtup simulate`` and ``safe`` on a group as one look at a cluster shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli.simulate.groups import changed_configs
from caughtup.agents.main import main
from tests.support.groups.records import GROUP
from tests.support.states import NOW_MS, everything


@pytest.fixture(autouse=True)
def _a_look_at_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "caughtup.agents.cli.simulate.groups"
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
    assert any(re.fullmatch(r"    \|0 {8}\|\d+ (s|min)( .*)?", line) for line in rest)
    assert "  A = a" in rest


def test_without_a_rate_times_are_least_ones() -> None:
    ran = run("simulate", GROUP, "--kill", "a", "--lose-state")
    assert "≥ 45 s" in ran.output
    assert "Set how fast a thread restores with --restore-rate" in ran.output


def test_tasks_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    file, page = tmp_path / "recorded.json", tmp_path / "page.html"
    file.write_text(json.dumps(a_scenario("orders", 0, tasks=12)))
    ran = run("simulate", "orders", "--scenario", str(file), "--add", "1", "--html", str(page))
    numbers = [f"0_{number}" for number in range(12)]
    assert re.findall(r"^0_\d+", ran.output, re.MULTILINE) == numbers
    data = page.read_text().split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)[0]["tasks"] == numbers


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
    assert data[0]["name"] == "+1, by the group's assignor"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["simulate", GROUP], 2, "name the change: --add, --remove, --kill or --restart"),
        (
            ["simulate", GROUP, "--add", "1", "--set", "num.standby.replica=1"],
            2,
            "did you mean num.standby.replicas?",
        ),
        (["simulate", "nobody", "--add", "1"], 3, "cannot play nobody: it has no members"),
        (["simulate", "plain", "--add", "1"], 3, "played with --protocol consumer"),
        (["simulate", "--add", "1", "--scenario", "/none/x"], 3, "cannot read /none/x"),
        (["simulate", "--add", "1"], 2, "name a GROUP"),
        (["simulate", GROUP, "--add", "1", "--protocol", "consumer"], 3, "no consumer group"),
        (
            ["simulate", GROUP, "--add", "1", "--protocol", "streams", "--assignor", "sticky"],
            3,
            "one assignor",
        ),
        (
            [
                "simulate",
                "plain",
                "--add",
                "1",
                "--protocol",
                "consumer",
                "--set",
                "num.standby.replicas=1",
            ],
            3,
            "no such configs",
        ),
        (["simulate", GROUP, "--kill", "x"], 3, "'x' is not among a, b"),
        (["simulate", GROUP, "--add", "1", "--set", "num.standbys=1"], 2, "is not known"),
        (["simulate", GROUP, "--add", "1", "--set", "max.warmup.replicas=--1"], 2, "max.warmup"),
        (["simulate", GROUP, "--add", "1", "--set", "x"], 2, "write NAME=VALUE"),
        (["simulate", GROUP, "--add", "1", "--restore-rate", "-1"], 2, "is not a rate"),
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


def a_scenario(name: str, lag: int, tasks: int = 4) -> dict[str, Any]:
    """Of four tasks, all on one client; the other has a standby of one and nothing else."""
    ids = [f"0_{number}" for number in range(tasks)]
    clients = {
        "00000000-0000-0000-0000-000000000001": {
            "capacity": 2,
            "previous_active": ids,
            "lags": dict.fromkeys(ids, -2),
            "client_ids": ["orders-a-StreamThread-1-consumer"],
        },
        "00000000-0000-0000-0000-000000000002": {
            "capacity": 2,
            "previous_standby": ["0_0"],
            "lags": {"0_0": lag},
            "client_ids": ["orders-b-StreamThread-1-consumer"],
        },
    }
    return {
        "name": name,
        "assignor": "high_availability",
        "tasks": {task: {"stateful": True} for task in ids},
        "greatest_lags": dict.fromkeys(ids, 100_000),
        "clients": {
            process: {"tags": {}, "previous_active": [], "previous_standby": [], **client}
            for process, client in clients.items()
        },
    }


def test_a_recorded_group_is_played_from_its_file(tmp_path: Path) -> None:
    """As ``caughtup assign`` reads it, and as a table of generations has it in a column."""
    lines = [
        json.dumps(a_scenario("orders/1", 0)),
        json.dumps({"group": "orders", "scenario": json.dumps(a_scenario("orders/2", 90_000))}),
        json.dumps(a_scenario("others/9", 0)),
    ]
    file = tmp_path / "recorded.jsonl"
    file.write_text("\n".join(lines) + "\n")
    shared = ("--scenario", str(file), "--kill", "orders-a", "--lose-state", "--format", "json")
    rate = ("--restore-rate", "1000..2000")
    behind = json.loads(run("simulate", "orders", *shared, *rate).output)
    beside = json.loads(run("simulate", "orders/1", *shared, *rate).output)
    assert behind["played"] == "kill orders-a"
    # Three states of 100,000 offsets, and of 0_0 what the standby lacks after the session's 45 s.
    assert 340_000 < behind["slow"]["offsets_restored"] < 350_000
    assert beside["slow"]["offsets_restored"] == 300_000
    assert behind["slow"]["longest_still_ms"] > behind["fast"]["longest_still_ms"] > 100_000
    unknown = json.loads(run("simulate", "orders", *shared).output)
    assert not unknown["restoring_known"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no scenario of orders"),
        ("{}\n", "has no scenario of orders"),
        ('{"name": "orders", "x": NaN}\n', "line 1"),
        ('["orders"]\n', "line 1: is not an object"),
        ('{"name": "orders", "assignor": "sticky", "clients": {}, "tasks": {}}', "at least one"),
        ('{"scenario": "{"}', "line 1, scenario"),
    ],
)
def test_a_file_without_a_scenario_is_refused_in_one_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text(text)
    ran = run("simulate", "orders", "--scenario", str(file), "--add", "1")
    assert ran.exit_code == 3
    assert said in ran.output
    assert len(ran.output.splitlines()) == 1


def test_an_application_is_played_as_if_its_coordinator_assigned() -> None:
    ran = run("simulate", GROUP, "--add", "1", "--restore-rate", "1000", "--protocol", "streams")
    assert ran.output.splitlines()[1].startswith("+1, streams protocol")


def test_consumers_are_played_by_partition() -> None:
    shared = ("--protocol", "consumer", "--format", "json")
    ran = run("simulate", "plain", "--remove", "c1", "--assignor", "uniform", *shared)
    (line,) = map(json.loads, ran.output.splitlines())
    assert (line["protocol"], line["slow"]["rebalances"]) == ("consumer", 1)
    (moved,) = [task for task, still in line["slow"]["still_ms"].items() if still]
    assert moved in {"clicks-0", "clicks-1"}
    # Who stays hears of it by its next heartbeat, 5 s after the last.
    assert 0 < line["slow"]["still_ms"][moved] <= 5_100


def test_safe_exits_by_its_answer() -> None:
    yes = run("safe", GROUP, "--stop", "b", "--restore-rate", "1000")
    assert yes.exit_code == 0
    assert yes.output.splitlines() == [
        "safe: no task stands still",
        "A task may stand still for 60 s; change that with --within.",
    ]
    told = run("safe", GROUP, "--stop", "b", "--restore-rate", "1000", "--within", "30s")
    assert told.output == "safe: no task stands still\n"
    no = run("safe", GROUP, "--stop", "a", "--restore-rate", "1000", "--format", "json")
    assert no.exit_code == 1
    assert json.loads(no.output)["task"] in {"0_0", "0_1"}
    assert json.loads(no.output)["within_ms"] == 60_000


def test_configs_are_read_as_kafka_has_them() -> None:
    assert changed_configs(["num.standby.replicas=1", "rack.aware.assignment.tags=zone,rack"]) == (
        ("num.standby.replicas", 1),
        ("rack.aware.assignment.tags", ["zone", "rack"]),
    )
