"""``caughtup bench assign``: on small groups, but with Kafka's own assignors beside ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from caughtup.bench.assign import growth, pairs
from caughtup.bench.assign.group_sizes import (
    SCALE_TEST_SIZES,
    GroupSize,
    first_round,
    next_round,
    one_more_client,
)
from caughtup.bench.assign.growth import GROWTH, ROUNDS, measure_group
from caughtup.bench.main import bench
from caughtup.demo.apps.published_assignor import PublishedAssignor
from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import CaughtupError

QUICK = ("--repeats", "2", "--warm-up", "0", "--format", "json")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(bench, ["assign", *arguments])


def figures(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "assignor",
    [
        pytest.param(name, marks=() if name == "high_availability" else pytest.mark.thorough)
        for name in sorted(SCALE_TEST_SIZES)
    ],
)
def test_both_decide_each_group_twice_and_alike_if_kafka_has_the_assignor(assignor: str) -> None:
    result = run("--assignor", assignor, "--shape", "20x3x2x1", "--shape", "6x9x1x2", *QUICK)
    assert result.exit_code == 0, result.output
    printed = figures(result)
    assert [(one["shape"], one["group"]) for one in printed] == [
        ("20x3x2x1", "starts"),
        ("20x3x2x1", "goes on"),
        ("6x9x1x2", "starts"),
        ("6x9x1x2", "goes on"),
    ]
    for one in printed:
        assert one["same"] is (None if assignor == "minimal_movement" else True)
        assert one["ratio"] == one["ours"]["median_ms"] / one["jar"]["median_ms"]
        assert one["cpu_ratio"] == one["ours"]["cpu_ms"] / one["jar"]["cpu_ms"]
        for side in ("ours", "jar"):
            times = one[side]
            assert 0 < times["least_ms"] <= times["median_ms"] <= times["most_ms"]


@pytest.mark.heavy
def test_a_decision_unlike_the_jars_is_shown_and_gives_exit_status_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(scenario: Scenario) -> Decision:
        decision = decide(scenario)
        return replace(decision, probing_rebalance_needed=not decision.probing_rebalance_needed)

    monkeypatch.setattr(pairs, "decide", wrong)
    result = run("--shape", "4x2x1x1", "--repeats", "1", "--warm-up", "0")
    assert result.exit_code == 1
    assert result.stdout.count("NOT ALIKE") == 2


@pytest.mark.heavy
def test_the_jvm_that_fails_says_why_in_one_line() -> None:
    with PublishedAssignor() as published:
        published.load({**first_round("sticky", GroupSize(2, 2, 1, 0)), "assignor": "mine"})
        with pytest.raises(CaughtupError, match="no assignor is called mine") as raised:
            published.decide()
    assert raised.value.code == "java_failed"
    assert "\n" not in raised.value.message
    published.close()


@pytest.mark.parametrize("text", ["", "6000", "1x1x1", "0x1x1x1", "1x0x1x1", "1x1x0x1", "axbxcxd"])
def test_what_is_no_shape_is_refused_in_one_line(text: str) -> None:
    result = run("--shape", text)
    assert result.exit_code == 2
    assert repr(text) in result.stderr


@pytest.mark.parametrize(
    "arguments", [("--plot", "figure.svg"), ("--growth", "--shape", "1x1x1x0")]
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "--growth" in result.stderr


def test_rounds_follow_each_other_as_in_kafkas_scale_test() -> None:
    first = first_round("high_availability", GroupSize(5, 2, 3, 1))
    lags = {lag for client in first["clients"].values() for lag in client["lags"].values()}
    assert lags == {100_000}
    decision = decide(parse_scenario(first)).to_dict()
    grown = one_more_client(next_round(first, decision))
    parse_scenario(grown)
    *old, new = grown["clients"].values()
    for client, given in zip(old, decision["clients"].values(), strict=True):
        assert client["capacity"] == 3
        assert (client["previous_active"], client["previous_standby"]) == (
            given["active"],
            given["standby"],
        )
        assert {task for task, lag in client["lags"].items() if lag == -2} == set(given["active"])
    assert new == {**new, "capacity": 3, "previous_active": [], "previous_standby": []}


@pytest.mark.heavy
def test_growth_is_measured_in_processes_of_their_own_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = dict.fromkeys(GROWTH, ((4, 2), (9, 5)))
    monkeypatch.setattr(growth, "GROWTH", sizes)
    picture = tmp_path / "growth.svg"
    arguments = ("--growth", "--repeats", "1", "--format", "json", "--plot", str(picture))
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    printed = figures(result)
    assert [one["pairs"] for one in printed] == [8, 45] * 3
    for one in printed:
        assert list(one["rounds"]) == list(ROUNDS)
        assert 1 < one["peak_mib"] < 1024
    svg = ElementTree.parse(picture).getroot()
    panels = svg.findall("{http://www.w3.org/2000/svg}g")
    assert len(panels) == len(ROUNDS) + 1
    for panel in panels:
        assert len(panel.findall("{http://www.w3.org/2000/svg}circle")) == len(printed)

    unwritable = run(*arguments[:-1], str(tmp_path / "none" / "growth.svg"))
    assert unwritable.exit_code == 1
    assert "No such file" in unwritable.stderr


@pytest.mark.heavy
def test_a_growth_process_that_fails_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "GROWTH", {"too large": ((46_342, 1),)})
    result = run("--growth", "--assignor", "sticky", "--repeats", "1")
    assert result.exit_code == 1
    assert "46,341" in result.stderr
    assert result.stderr.count("\n") == 1


def test_memory_is_that_of_the_process_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "GROWTH", {"one": ((3, 3),)})
    ballast = bytearray(300 << 20)
    (apart,) = growth.measure_growth("high_availability", 1)
    here = measure_group("high_availability", GroupSize(3, 3, 1, 1), 1)
    assert apart["peak_mib"] < len(ballast) >> 20 < here["peak_mib"]
