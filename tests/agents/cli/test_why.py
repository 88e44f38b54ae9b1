"""``caughtup why``: what it prints, of a look and of a service."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner

from caughtup.agents.cli import why as module
from caughtup.agents.cli.why import text_lines
from caughtup.agents.main import main
from caughtup.models.why.explain import why
from caughtup.models.why.links import Link, Why, fitted
from tests.support.observability.site import Site
from tests.support.states import JUDGED_MS, KEEPING_UP, STOPPED, assess, everything, judged


async def run(*arguments: str) -> Any:
    """Run a command while the loop goes on answering it."""
    return await asyncio.to_thread(CliRunner().invoke, main, ["why", *arguments])


async def test_of_a_service_it_prints_the_verdict_and_the_causes_in_order() -> None:
    async with Site(judged()) as site:
        ran = await run("--service", site.url(""), STOPPED)
    assert (ran.exit_code, ran.stderr) == (0, "")
    first, cause, *_ = ran.stdout.splitlines()
    assert first == "stopped: stopped"
    assert cause.startswith("1. clicks-1: 4,900 offsets to read and no commit for 49 min")
    assert ran.stdout.splitlines()[-1].startswith("Not known: ")


async def test_json_is_the_services_answer() -> None:
    async with Site(judged()) as site:
        ran = await run("--service", site.url(""), "--format", "json", STOPPED)
        async with site.get(f"/api/groups/{STOPPED}/why") as response:
            assert json.loads(ran.stdout) == await response.json()


async def test_an_unknown_group_exits_3() -> None:
    async with Site(judged()) as site:
        ran = await run("--service", site.url(""), "nobody")
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr == "caughtup: there is no group of this name\n"


async def test_links_that_only_a_newer_service_knows_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind: Any = "solar_flare"
    newer = Link(kind=kind, sure="certain", text="?", evidence=[])
    answer = Why(group=STOPPED, verdict="stopped", links=[newer], not_known=[])

    async def explained(self: object, group: str) -> Why:
        return answer

    monkeypatch.setattr("caughtup.agents.web.why.WhyEndpoints._links", explained)
    async with Site(judged()) as site:
        ran = await run("--service", site.url(""), STOPPED)
    assert ran.stdout.splitlines() == ["stopped: stopped", "No cause is known."]


@pytest.mark.parametrize(("group", "code"), [(KEEPING_UP, 0), ("nobody", 3)])
def test_without_a_service_it_looks_at_the_cluster(
    monkeypatch: pytest.MonkeyPatch, group: str, code: int
) -> None:
    made: list[tuple[object, ...]] = []
    closed: list[bool] = []

    class Looks:
        def __init__(self, settings: object, groups: list[str], **kinds: bool) -> None:
            made.append((groups, kinds))

        def look(self, progress: object) -> object:
            return judged()

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr(module, "ClusterLooks", Looks)
    ran = CliRunner().invoke(main, ["why", group])
    assert ran.exit_code == code
    assert made == [([group], {"connect": True, "reassignments": True})]
    assert closed == [True]
    if code:
        assert ran.stderr == "caughtup: nobody is not known on this cluster\n"
    else:
        assert "The group is ok: its partition keeps up" in ran.stdout


def test_there_are_at_most_ten_lines_and_what_is_left_out_is_counted() -> None:
    links = [Link(kind="no_progress", sure="likely", text=f"n{n}", evidence=[]) for n in range(12)]
    lines = list(text_lines(fitted("g", "stopped", links, ["this", "that"])))
    assert len(lines) == 10
    assert lines[7:] == [
        "7. n6 (likely)",
        "5 further causes: --format json has what fits into 4 kB.",
        "Not known: this; that.",
    ]


def test_hostile_names_are_escaped() -> None:
    state = everything()
    assess(state, JUDGED_MS)
    for group in state.group_names():
        found = why(state, group, JUDGED_MS)
        assert found is not None
        for line in text_lines(found):
            assert line.isprintable()


def test_the_help_has_examples() -> None:
    ran = CliRunner().invoke(main, ["why", "--help"])
    assert "caughtup why --service http://127.0.0.1:8080 orders" in ran.stdout
