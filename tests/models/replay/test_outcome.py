"""Recorded generations decided again: the same decisions, and figures that add up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.agents.cli.assign import assign
from caughtup.bench.movement.changes import CHANGES, VARIETIES, Change, Variety
from caughtup.bench.replay.histories import described, generated_history
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.decisions.inputs.gathering import gather_inputs
from caughtup.models.errors import ScenarioError
from caughtup.models.replay.outcome import RECORDED, ReplayRow, replay_group
from caughtup.models.replay.recorded import FIRST, RecordedGeneration, episodes, observed_rate
from caughtup.models.replay.settings import ReplaySetting, replay_settings
from caughtup.models.replay.summary import summarise
from caughtup.models.simulation.rounds import play
from tests.support.groups import streams
from tests.support.groups.records import GROUP, START_MS
from tests.support.recorded import recorded_generation
from tests.support.sizes import daily
from tests.support.states import TOLD, list_ends, read, state_with_ends

PLAIN = Variety(standbys=0, unequal=False, tags=False, racks=False)
SMALL = Change(3, 4, 24)
KAFKAS = ReplaySetting("high_availability")
OURS = ReplaySetting("minimal_movement")


def wire_history(*more: tuple[int, tuple[streams.Member, ...]]) -> list[RecordedGeneration]:
    """Record generations through the bytes of the wire, a minute apart."""
    told = (
        (7, streams.WARMING),
        (8, streams.HANDING_OVER),
        (9, streams.HANDED_OVER),
        *more,
    )
    recorded = []
    state = state_with_ends()
    for count, (number, members) in enumerate(told):
        at_ms = START_MS + 60_000 * count
        list_ends(state, at_ms=at_ms + 1_000)
        read(state, streams.generation(number, *members, at_ms=at_ms), seen_ms=at_ms)
        newest = state.applications[GROUP].newest
        inputs = gather_inputs(newest, TOLD, state.ends, state.commits.of(GROUP), at_ms)
        recorded.append(recorded_generation(newest, inputs))
    return recorded


def by_assign(scenarios: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    text = "".join(json.dumps(one) + "\n" for one in scenarios)
    result = CliRunner().invoke(assign, input=text)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


@pytest.mark.parametrize("seed", range(daily(1, 3)))
@pytest.mark.parametrize("variety", [v for v in VARIETIES if not v.racks], ids=str)
def test_every_decision_is_that_of_caughtup_assign(variety: Variety, seed: int) -> None:
    history = generated_history("orders", Change(4, 5, 20), variety, seed)
    settings = replay_settings(
        ["max.warmup.replicas=1,6", "num.standby.replicas=0,1"],
        ["high_availability", "minimal_movement"],
    )
    rows = list(replay_group(history, settings))
    assert len(rows) == len(history) * 10
    scenarios = [setting.of(one.scenario) for setting in settings for one in history]
    for row, answer in zip(rows, by_assign(scenarios), strict=True):
        assert answer.pop("name") == f"orders/{row.generation}"
        assert row.decision == answer
        assert row.error is None


@pytest.mark.parametrize("seed", range(daily(1, 3)))
@pytest.mark.parametrize("variety", [v for v in VARIETIES if not v.racks], ids=str)
def test_what_happened_is_what_would_have_under_what_happened(variety: Variety, seed: int) -> None:
    """A history that Kafka's assignor made costs what playing that assignor says."""
    history = generated_history("orders", SMALL, variety, seed)
    rows = list(replay_group(history, [None, KAFKAS]))
    (recorded,) = [row.figures for row in rows if row.setting == RECORDED and row.change]
    (played,) = [row.figures for row in rows if row.setting == str(KAFKAS) and row.change]
    assert recorded is not None
    assert played is not None
    assert recorded.seconds_still is None
    still = played.seconds_still, played.longest_still_seconds
    assert (
        replace(recorded, estimated=True, seconds_still=still[0], longest_still_seconds=still[1])
        == played
    )
    outcome = play(parse_scenario(KAFKAS.of(history[0].scenario)))
    assert played.copies_built == outcome.copies_built > 0
    assert played.offsets_copied == outcome.offsets_restored
    assert played.rebalances == outcome.rounds - 1 == len(history) - 1
    assert played.seconds == 600 * played.rebalances


def test_fewer_copies_and_more_warm_ups_take_less_time() -> None:
    history = generated_history("orders", CHANGES[0], PLAIN, 0)
    settings = replay_settings(["max.warmup.replicas=8"], [KAFKAS.assignor, OURS.assignor])
    found = {one.setting: one for one in summarise(replay_group(history, settings), by_group=True)}
    kafkas, more_warm_ups = (
        found["high_availability"],
        found["high_availability, max.warmup.replicas=8"],
    )
    ours = found["minimal_movement"]
    assert (kafkas.copies_built, kafkas.rebalances) == (36, 18)
    assert (ours.copies_built, ours.rebalances) == (12, 6)
    assert more_warm_ups.rebalances < kafkas.rebalances
    assert ours.seconds == 6 * 600


def test_the_wires_generations_are_one_change_until_members_come_or_go() -> None:
    (first,) = episodes(wire_history())
    assert (first.change, len(first.generations), first.until_ms) == (FIRST, 3, None)
    rows = {row.setting: row for row in replay_group(wire_history(), [None, KAFKAS]) if row.change}
    recorded, played = rows[RECORDED].figures, rows[str(KAFKAS)].figures
    assert recorded is not None
    assert played is not None
    assert (recorded.copies_built, recorded.rebalances, recorded.seconds) == (1, 2, 120)
    assert (recorded.offsets_copied, recorded.cold_hand_overs, recorded.balanced) == (
        50_000,
        0,
        True,
    )
    assert (recorded.estimated, played.estimated) == (False, True)
    assert (played.copies_built, played.rebalances, played.seconds) == (1, 1, 600)


def test_a_second_change_begins_where_processes_differ() -> None:
    alone = streams.Member(
        "a", 1, ("0_0",), {"0_0": streams.RUNNING, "0_1": 50_000}, ("0_0", "0_1")
    )
    joined = streams.Member("c", 3, active=("0_1",))
    history = wire_history((10, (alone,)), (11, (alone, joined)))
    found = list(episodes(history))
    assert [one.change for one in found] == [FIRST, "1 left", "1 joined"]
    assert [one.until_ms for one in found] == [history[3].as_of_ms, history[4].as_of_ms, None]
    assert [one.before and one.before.generation for one in found] == [None, 9, 10]
    rows = [row for row in replay_group(history, [None]) if row.change]
    assert [row.seconds_until_change for row in rows] == [180, 60, None]
    cold = [row.figures.cold_hand_overs for row in rows if row.figures]
    assert cold == [0, 0, 1], "client 3 was given a task of which it has nothing"


def test_a_copy_that_was_hardly_begun_counts_once() -> None:
    waiting = (streams.WARMING[0], replace(streams.WARMING[1], sums={}))
    history = wire_history((10, waiting), (11, waiting))[3:]
    (row,) = [row for row in replay_group(history, [None]) if row.change]
    assert row.figures is not None
    assert row.figures.copies_built == 1


def test_a_generation_that_cannot_be_decided_is_a_row_and_the_others_are_served() -> None:
    history = generated_history("orders", SMALL, PLAIN, 0)
    broken = {**history[1].scenario, "clients": {}}
    history[1] = replace(history[1], scenario=broken)
    rows = list(replay_group(history, [None, KAFKAS]))
    refused = [row for row in rows if row.error]
    assert {(row.generation, row.setting) for row in refused} == {(2, RECORDED), (2, str(KAFKAS))}
    assert refused[0].error == "no_clients: clients: there must be at least one"
    assert len(rows) == 2 * len(history)
    (recorded, played) = summarise(rows, by_group=True)
    assert (recorded.undecided, played.undecided, played.changes) == (1, 1, 1)


def test_doubts_are_counted_and_nothing_else_changes() -> None:
    history = generated_history("orders", SMALL, PLAIN, 0)
    doubted = [replace(one, doubts=("task 0_0: its end",)) for one in history]
    (certain,), (doubtful,) = (
        summarise(replay_group(one, [KAFKAS]), by_group=True) for one in (history, doubted)
    )
    assert (certain.doubtful, doubtful.doubtful) == (0, len(history))
    assert doubtful.copies_built == certain.copies_built


def figures_of(rows: list[ReplayRow]) -> Any:
    (figures,) = [row.figures for row in rows if row.figures]
    return figures


def slow_history(rate: int) -> list[RecordedGeneration]:
    """One client joins one that has four tasks of 1,000,000 offsets; its copies come slowly."""
    tasks = [f"0_{n}" for n in range(4)]
    first, second = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2))
    recorded = []
    for number in (1, 2):
        restored = rate * 600 * (number - 1)
        sums = {"0_2": restored, "0_3": restored} if number > 1 else {}
        scenario = {
            "assignor": "high_availability",
            "config": {"acceptable.recovery.lag": 10_000, "max.warmup.replicas": 2},
            "tasks": {task: {"stateful": True} for task in tasks},
            "clients": {
                first: {
                    "capacity": 1,
                    "previous_active": tasks,
                    "previous_standby": [],
                    "lags": dict.fromkeys(tasks, -2),
                },
                second: {
                    "capacity": 1,
                    "previous_active": [],
                    "previous_standby": sorted(sums),
                    "lags": {task: 1_000_000 - sums.get(task, 0) for task in tasks},
                },
            },
        }
        assigned = {
            "probing_rebalance_needed": True,
            "clients": {
                first: {"active": tasks, "standby": [], "warmup": []},
                second: {"active": [], "standby": ["0_2", "0_3"], "warmup": []},
            },
        }
        reported = {first: dict.fromkeys(tasks, -2), second: sums}
        recorded.append(
            RecordedGeneration("orders", number, number * 600_000, scenario, assigned, reported)
        )
    return recorded


def test_the_pace_is_that_of_copies_that_were_behind_all_the_time() -> None:
    assert observed_rate(slow_history(500)) == 500
    assert observed_rate(slow_history(0)) is None
    assert observed_rate(slow_history(1_660)) is None, "in the end they were within the limit"
    assert observed_rate(slow_history(2_000)) is None, (
        "they were there before the interval was over"
    )
    assert observed_rate(slow_history(500)[:1]) is None


def test_where_the_pace_is_known_copies_take_the_rebalances_that_they_need() -> None:
    slow, unknown = (
        figures_of(list(replay_group(slow_history(rate), [KAFKAS]))) for rate in (500, 0)
    )
    assert (unknown.rebalances, unknown.paced, unknown.seconds) == (1, False, 600)
    # 1,000,000 offsets at 300,000 an interval: the fourth rebalance finds them within 10,000.
    assert (slow.rebalances, slow.paced) == (4, True)
    assert slow.seconds == 4 * 600


def test_a_copy_that_is_handed_over_cold_takes_its_time_where_the_pace_is_known() -> None:
    history = slow_history(500)
    left, (second, client) = history[-1], list(history[-1].scenario["clients"].items())[-1]
    scenario = {**left.scenario, "clients": {second: client}}
    history.append(replace(left, generation=3, as_of_ms=1_800_000, scenario=scenario))
    (row,) = [row for row in replay_group(history, [KAFKAS]) if row.change == "1 left"]
    assert row.figures is not None
    assert (row.figures.rebalances, row.figures.cold_hand_overs) == (0, 4)
    # Two copies have 700,000 of 1,000,000 offsets to go, and two have all.
    assert row.figures.seconds == 1_000_000 / 500


def test_every_combination_comes_after_what_was_recorded() -> None:
    settings = replay_settings(
        ["max.warmup.replicas=2,4", "probing.rebalance.interval.ms=60000"], ["minimal_movement"]
    )
    assert list(map(str, settings)) == [
        "minimal_movement",
        "minimal_movement, max.warmup.replicas=2, probing.rebalance.interval.ms=60000",
        "minimal_movement, max.warmup.replicas=4, probing.rebalance.interval.ms=60000",
    ]
    assert replay_settings([], []) == (KAFKAS,)
    scenario = described("x", parse_scenario(generated_history("g", SMALL, PLAIN, 0)[0].scenario))
    changed = settings[1].of(scenario)
    assert changed["config"] == {
        **scenario["config"],
        "max.warmup.replicas": 2,
        "probing.rebalance.interval.ms": 60_000,
    }
    assert changed["assignor"] == "minimal_movement"
    assert scenario["assignor"] == "high_availability"


@pytest.mark.parametrize(
    ("what", "assignors", "message"),
    [
        (["max.warmups=2"], [], "setting 'max.warmups' is not among acceptable.recovery.lag, max"),
        (["max.warmup.replicas"], [], "max.warmup.replicas: give its values"),
        (["max.warmup.replicas=2,x"], [], "max.warmup.replicas: 'x' is not a number from 1 to"),
        (["max.warmup.replicas=0"], [], "max.warmup.replicas: '0' is not a number from 1 to"),
        (["num.standby.replicas=4294967296"], [], "is not a number from 0 to 2,147,483,647"),
        (["acceptable.recovery.lag=" + "9" * 5_000], [], "acceptable.recovery.lag: '9999"),
        (["max.warmup.replicas=2", "max.warmup.replicas=4"], [], "is given twice"),
        ([], ["sticki"], "assignor 'sticki' is not among fallback_prior, high_availability"),
        (["max.warmup.replicas=" + ",".join(map(str, range(1, 200)))], [], "200 combinations"),
    ],
)
def test_what_cannot_be_asked_is_named_in_one_line(
    what: list[str], assignors: list[str], message: str
) -> None:
    with pytest.raises(ScenarioError, match=r"^[^\n]*$") as caught:
        replay_settings(what, assignors)
    assert message in str(caught.value)
