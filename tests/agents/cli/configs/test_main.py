"""``caughtup configs``: what is known of each config, and a settings file made of it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli.configs import main as command
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.main import main
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.state.cluster import ClusterState
from tests.models.decisions.test_learned_configs import a_state, an_application, live
from tests.models.learning.applications import GROUP, Truth
from tests.support.decisions import decided_state
from tests.support.groups.streams import CHANGELOG, WARMING


def run(monkeypatch: pytest.MonkeyPatch, state: ClusterState, *arguments: str) -> Result:
    monkeypatch.setattr(command, "read_snapshot", lambda *_: state)
    return CliRunner().invoke(main, ["configs", *arguments])


def warming() -> ClusterState:
    """A state that saw one generation of an application that nobody told anything of."""
    return decided_state(*WARMING, parameters=ApplicationParameters())


def test_each_config_has_its_value_and_how_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming())
    assert found.exit_code == 0
    rows = [line.split("  ") for line in found.stdout.splitlines()]
    cells = {row[1].strip(): [cell.strip() for cell in row if cell.strip()] for row in rows[1:7]}
    lag = "a copy that lags by something in between when a leader decides"
    assert cells["acceptable.recovery.lag"][2:] == ["0 to 49999", "learned from 1 generation", lag]
    assert cells["rack.aware.assignment.tags"][2:] == ["none", "read", "-"]
    assert found.stdout.endswith(
        "orders: known from one generation, the newest. More is learned from each that a running "
        "service sees.\n"
    )


def test_json_is_a_line_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming(), "--format", "json", GROUP)
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert {line["group"] for line in lines} == {GROUP}
    assert {
        "group": GROUP,
        "name": "num.standby.replicas",
        "values": "0",
        "value": 0,
        "provenance": "learned",
        "generations": 1,
        "known": "learned from 1 generation",
    } in lines
    assert len(lines) == 6


def test_of_no_such_application_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming(), "nobody")
    assert found.exit_code == 3
    assert found.stderr == (
        "caughtup: nobody is no Kafka Streams application whose leader assigns its tasks\n"
    )


def test_what_is_printed_as_toml_says_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming(), "--toml")
    assert found.stdout.splitlines()[:2] == [
        '[applications."orders"]',
        '"num.standby.replicas" = 0  # learned from 1 generation',
    ]
    assert '#"max.warmup.replicas" = 1  # assumed: 1 or more' in found.stdout
    assert '[applications."orders".changelogs]  # inferred' in found.stdout
    assert tomllib.loads(found.stdout)["applications"]["orders"]["changelogs"] == {"0": [CHANGELOG]}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_printed_as_toml_can_be_pasted(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The service with these settings goes on where the one without them was."""
    truth = Truth(standbys=1, warm_ups=2, lag=1_000, probing_ms=120_000)
    app = an_application(seed, truth)
    state = a_state(app)
    list(live(state, app, 15))
    file = tmp_path / "caughtup.toml"
    file.write_text(run(monkeypatch, state, "--toml").stdout)
    told = load_settings(file).parameters()[GROUP]
    assert told.changelogs == app.parameters.changelogs
    right = {"num.standby.replicas": 1, "max.warmup.replicas": 2}
    right |= {"probing.rebalance.interval.ms": 120_000, "acceptable.recovery.lag": 1_000}
    assert told.config.items() <= right.items()
    again = ClusterState("cluster-1", {GROUP: told})
    for decided in live(again, app, 8):
        assert decided.inputs.contradicted == ()
        assert decided.exact.result != "mismatch"
