"""``caughtup assign`` as a stream of lines: each is answered, whatever the others are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.agents.cli.assign import assign
from tests.models.assignors.building import client, described

SCENARIO = described(client(active=("0_0",)), client(), stateful=("0_0",), stateless=("1_0",))
DECISION = {
    "name": "test",
    "probing_rebalance_needed": False,
    "clients": {
        "00000000-0000-0000-0000-000000000001": {"active": ["0_0"], "standby": [], "warmup": []},
        "00000000-0000-0000-0000-000000000002": {"active": ["1_0"], "standby": [], "warmup": []},
    },
}


def answers(text: str | bytes, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit status and the lines printed for this input."""
    result = CliRunner().invoke(assign, arguments, input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, [json.loads(line) for line in result.output.splitlines()]


def test_a_scenario_a_line_gives_a_decision_a_line() -> None:
    line = json.dumps(SCENARIO) + "\n"
    assert answers(line * 2) == (0, [DECISION, DECISION])


def test_no_input_is_no_failure() -> None:
    assert answers("") == (0, [])


@pytest.mark.parametrize(
    ("line", "name", "code"),
    [
        ('{"name": "cut short"', None, "bad_json"),
        ("[1, 2]", None, "bad_field"),
        ('{"name": "empty"}', "empty", "missing_field"),
        (json.dumps({**SCENARIO, "assignor": "mine"}), "test", "unsupported"),
    ],
)
def test_a_line_that_cannot_be_decided_gives_its_error_and_the_next_is_served(
    line: str | bytes, name: str | None, code: str
) -> None:
    bad = line if isinstance(line, bytes) else line.encode()
    good = json.dumps(SCENARIO).encode()
    status, (failure, decision) = answers(bad + b"\n" + good)
    assert status == 1
    assert failure["name"] == name
    assert failure["error"]["code"] == code
    assert "\n" not in failure["error"]["message"]
    assert decision == DECISION


def test_each_repeat_is_timed() -> None:
    status, (decision,) = answers(json.dumps(SCENARIO), "--time", "3")
    milliseconds = decision.pop("ms")
    assert (status, decision) == (0, DECISION)
    assert len(milliseconds) == 3
    assert all(0 < one < 10_000 for one in milliseconds)


def test_a_connect_groups_rounds_are_decided_between_scenarios() -> None:
    """As a contract with others has it, to the letter."""
    first = {
        "time_ms": 0,
        "leader": "W1",
        "generation": 1,
        "connectors": {"A": 2, "B": 1},
        "workers": {"W1": {"owned": []}},
    }
    story = {"name": "any", "assignor": "connect_incremental", "rounds": [first]}
    lines = "\n".join(map(json.dumps, (SCENARIO, story, SCENARIO)))
    everything = ["A", "B", "A-0", "A-1", "B-0"]
    worker = {"assigned": everything, "revoked": [], "after": everything}
    rounds = [{"delay_ms": 0, "workers": {"W1": worker}}]
    assert answers(lines) == (0, [DECISION, {"name": "any", "rounds": rounds}, DECISION])
    _, (timed,) = answers(json.dumps(story), "--time", "2")
    assert len(timed.pop("ms")) == 2
    assert timed == {"name": "any", "rounds": rounds}


@pytest.mark.parametrize("assignor", ["connect_incremental", "connect_eager"])
def test_a_story_that_cannot_be_decided_gives_its_error_and_the_next_is_served(
    assignor: str,
) -> None:
    story = {"name": "bad", "assignor": assignor, "rounds": [{"leader": "W1"}]}
    status, (failure, decision) = answers(json.dumps(story) + "\n" + json.dumps(SCENARIO))
    assert (status, decision) == (1, DECISION)
    assert failure["name"] == "bad"
    assert failure["error"] == {
        "code": "missing_field",
        "message": "rounds.0.connectors: is missing",
    }


def test_a_decision_is_printed_before_the_next_scenario_is_read() -> None:
    command = "from caughtup.agents.cli.assign import assign; assign()"
    with subprocess.Popen(
        [sys.executable, "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for _ in range(2):
            running.stdin.write(json.dumps(SCENARIO) + "\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline()) == DECISION
        running.stdin.close()
        assert running.wait(timeout=30) == 0
