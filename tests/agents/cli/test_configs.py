"""``caughtup configs``: what is known of each config, and a settings file made of it."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli import configs as command
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.main import main
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.state.cluster import ClusterState
from tests.agents.cli.test_service_client import answering
from tests.models.learning.applications import GROUP
from tests.models.learning.truths import Truth
from tests.support.decisions import decided_state
from tests.support.groups.streams import CHANGELOG, WARMING
from tests.support.learning import a_state, an_application, live
from tests.support.observability.site import Site


def run(monkeypatch: pytest.MonkeyPatch, state: ClusterState, *arguments: str) -> Result:
    monkeypatch.setattr(command, "read_snapshot", lambda *_: state)
    return CliRunner().invoke(main, ["configs", *arguments])


async def asked(state: ClusterState, *arguments: str) -> Result:
    """Run the command against a service that has a state, while that answers."""
    async with Site(state) as site:
        every = ["configs", *arguments, "--service", site.url("")]
        return await asyncio.to_thread(CliRunner().invoke, main, every)


def warming() -> ClusterState:
    """A state that saw one generation of an application that nobody told anything of."""
    return decided_state(*WARMING, parameters=ApplicationParameters())


def test_each_config_has_its_value_and_how_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming())
    assert found.exit_code == 0
    rows = [line.split("  ") for line in found.stdout.splitlines()]
    cells = {row[1].strip(): [cell.strip() for cell in row if cell.strip()] for row in rows[1:7]}
    lag = "a copy whose lag is between these values when a leader decides"
    known = "learned from 1 generation, as if by default"
    assert cells["acceptable.recovery.lag"][2:] == ["0 to 49999", known, lag]
    assert cells["rack.aware.assignment.tags"][2:] == ["none", "read", "-"]
    assert found.stdout.endswith(
        "orders: known from the newest generation alone. "
        "A running service learns from every generation.\n"
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
        "caughtup: nobody is not a Kafka Streams application whose leader assigns its tasks\n"
    )


def test_what_is_printed_as_toml_says_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, warming(), "--toml")
    assert found.stdout.splitlines()[:2] == [
        '[applications."orders"]',
        '"num.standby.replicas" = 0  # learned from 1 generation',
    ]
    assert '#"max.warmup.replicas" = 2  # assumed, as if by default: 1 or more' in found.stdout
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
        assert decided.exact.leader.result != "mismatch"


@pytest.mark.parametrize("arguments", [(), ("--toml",), ("--format", "json"), ("--wide", "ord*")])
async def test_a_service_answers_what_a_look_at_the_same_would_print(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = an_application(3, Truth(standbys=1, lag=1_000))
    state = a_state(app)
    list(live(state, app, 12))
    looked, found = run(monkeypatch, state, *arguments), await asked(state, *arguments)
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout == looked.stdout
    assert "learned from 12 generations" in found.stdout
    assert "known from the newest generation" not in found.stdout


async def test_a_service_without_such_an_application_says_so() -> None:
    found = await asked(warming(), "nobody")
    assert (found.exit_code, found.stdout) == (3, "")
    assert "nobody is not a Kafka Streams application" in found.stderr


async def test_lines_that_no_service_makes_are_told_in_a_line() -> None:
    for line in (b'{"group": "g", "name": "n"}', b'{"group": "g", "changelogs": []}', b"{}"):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(line) + 1)
        with answering(head + line + b"\n") as url:
            every = ["configs", "--toml", "--service", url]
            found = await asyncio.to_thread(CliRunner().invoke, main, every)
        assert (found.exit_code, found.stdout) == (1, "")
        assert "check the port" in found.stderr


def test_what_is_told_of_racks_is_printed_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    app = an_application(3, Truth(standbys=1, lag=1_000))
    state = a_state(app, strategy="min_traffic", costs=(3, None))
    list(live(state, app, 3))
    found = run(monkeypatch, state, "--toml").stdout
    assert '\n"rack.aware.assignment.strategy" = "min_traffic"  # told\n' in found
    assert '\n"rack.aware.assignment.traffic_cost" = 3  # told\n' in found
    told = tomllib.loads(found)["applications"][GROUP]
    assert "rack.aware.assignment.non_overlap_cost" not in told
