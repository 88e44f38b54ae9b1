"""What a change of membership may cost: a few groups of each kind of ``caughtup bench movement``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.bench.main import bench
from caughtup.bench.movement import command
from caughtup.bench.movement.changes import CHANGES, VARIETIES, Change, Variety, changed_group
from caughtup.bench.movement.command import broken_promises, measure_movement
from caughtup.bench.movement.fewest import fewest_copies
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.simulation.rounds import PlayedRounds, play
from tests.models.assignors.building import client, described, scenario
from tests.support.sizes import daily

SMALL = [change for change in CHANGES if change.tasks <= daily(50, 100)]
PLAIN = Variety(standbys=0, unequal=False, tags=False, racks=False)


@pytest.mark.parametrize("variety", VARIETIES, ids=str)
@pytest.mark.parametrize("change", SMALL, ids=str)
def test_a_changed_group_is_balanced_at_the_price_that_is_promised(
    change: Change, variety: Variety
) -> None:
    for seed in range(1_000, 1_001 if variety.racks or variety.tags else 1_002):
        group = changed_group(change, variety, seed)
        outcome = play(replace(group, assignor="minimal_movement"))
        assert list(broken_promises(outcome, fewest_copies(group), variety)) == []


def test_a_group_on_its_way_to_balance_does_not_stop_there() -> None:
    """Within four rebalances nothing gets better: it stayed at 3.7 actives a thread more on some."""
    variety = Variety(1, unequal=True, tags=True, racks=True)
    group = changed_group(Change(10, 20, 100), variety, 6)
    outcome = play(replace(group, assignor="minimal_movement"))
    assert list(broken_promises(outcome, fewest_copies(group), variety)) == []


def test_the_large_change_is_balanced_at_the_price_that_is_promised() -> None:
    group = changed_group(Change(20, 21, 400), PLAIN, 1_000)
    outcome = play(replace(group, assignor="minimal_movement"))
    assert outcome.copies_built == fewest_copies(group) == 19
    assert outcome.rounds == 11


@pytest.mark.heavy
def test_the_jar_has_the_figures_that_are_known_of_it() -> None:
    """36 copies and 19 rounds for the fourth client of 48 tasks."""
    (figure,) = measure_movement([Change(3, 4, 48)], [PLAIN], seeds=2, kafka_seeds=2)
    assert figure["kafka"]["by"] == "the published jar"
    assert (figure["kafka"]["copies"], figure["kafka"]["rounds"]) == (36, 19)
    assert (figure["ours"]["copies"], figure["ours"]["rounds"]) == (12, 7)
    assert figure["fewest"] == 12
    assert figure["broken"] == []


@pytest.mark.heavy
@pytest.mark.parametrize("standbys", [0, 1])
def test_the_jar_and_our_reproduction_play_alike(standbys: int) -> None:
    variety = Variety(standbys, unequal=True, tags=False, racks=False)
    (figure,) = measure_movement([Change(3, 4, 48)], [variety], seeds=1, kafka_seeds=1)
    ours = play(changed_group(Change(3, 4, 48), variety, 0))
    assert figure["kafka"]["copies"] == ours.copies_built
    assert figure["kafka"]["rounds"] == ours.rounds
    assert figure["kafka"]["active_hand_overs"] == ours.active_hand_overs


def test_what_a_client_has_is_not_counted_among_the_fewest_copies() -> None:
    tasks = ("0_0", "0_1", "0_2", "0_3")
    assert fewest_copies(scenario(client(active=tasks), client(), stateful=tasks)) == 2
    begun = client({"0_1": 70_000}, standby=("0_1",))
    assert fewest_copies(scenario(client(active=tasks), begun, stateful=tasks)) == 1
    wide = client(capacity=4)
    assert fewest_copies(scenario(client(active=tasks), wide, stateful=tasks)) == 3
    assert fewest_copies(scenario(client(active=tasks), client(), stateful=tasks, standbys=1)) == 4


def test_the_fewest_copies_are_counted_with_the_tags_that_standbys_are_spread_over() -> None:
    """Two of three are in one zone: whatever isn't alone in the other has to have a copy there."""
    tasks = ("0_0", "0_1", "0_2")
    clients = [client(active=tasks), client(standby=tasks), client()]
    group = described(*clients, stateful=tasks, standbys=1)
    for one, zone in zip(clients, "aab", strict=True):
        one["tags"] = {"zone": zone}
    assert fewest_copies(parse_scenario(group)) == 2
    group["config"]["rack.aware.assignment.tags"] = ["zone"]
    assert fewest_copies(parse_scenario(group)) is None, "one would have three, another one"
    clients[2]["capacity"] = 2
    assert fewest_copies(parse_scenario(group)) == 3


def test_a_promise_that_is_not_kept_is_named_and_gives_exit_status_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def worse(*arguments: Any, **options: Any) -> PlayedRounds:
        outcome = play(*arguments, **options)
        return replace(outcome, copies_built=outcome.copies_built * 2, active_spread=1.5)

    monkeypatch.setattr(command, "play", worse)
    monkeypatch.setattr(command, "CHANGES", SMALL[:1])
    arguments = ["movement", "--seeds", "1", "--kafka-seeds", "0", "--plain", "--format", "json"]
    result = CliRunner().invoke(bench, arguments)
    assert result.exit_code == 1
    for line in result.stdout.splitlines():
        assert json.loads(line)["broken"] == ["copies", "spread"]


@pytest.mark.heavy
def test_the_table_has_a_row_for_each_kind_of_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CHANGES", SMALL[:1])
    result = CliRunner().invoke(
        bench, ["movement", "--seeds", "1", "--kafka-seeds", "1"], env={"COLUMNS": "160"}
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.count("3 → 4, 48 tasks") == len(VARIETIES)
    assert result.stdout.count(" kept ") == len(VARIETIES)
