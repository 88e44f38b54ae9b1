"""What ``caughtup reassignments`` says of what it saw, and of what a service saw before."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from caughtup.agents.cli.reassignments import main as command
from caughtup.agents.cli.reassignments.main import rendered
from caughtup.agents.looks import reassignments as looks
from caughtup.agents.looks.reassignments import ReassignmentView
from caughtup.agents.main import main
from caughtup.agents.probes.reassignments import ReassignmentRound
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import MissingLine, ThrottleLine
from caughtup.models.records.reassignments import CLUSTER_KEY
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS
from tests.support.reassignments.reassigning import (
    APART_MS,
    DEAD,
    FINE,
    OBSERVATIONS,
    SEEN_MS,
    cluster_observation,
    ongoing_observation,
)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "now_ms", lambda: SEEN_MS)


def round_at(at_ms: int, *, dead: bool = True, fine: bool = True) -> ReassignmentRound:
    copied = (at_ms - START_MS) // APART_MS * 1_000
    moving = ((ongoing_observation(DEAD, 5, at_ms, 0),) if dead else ()) + (
        (ongoing_observation(FINE, 2, at_ms, copied),) if fine else ()
    )
    return ReassignmentRound(cluster_observation(at_ms), True, moving)


def recorded(until: int = OBSERVATIONS - 1, **there: bool) -> list[tuple[bytes, bytes]]:
    """Return what a service wrote of its observations, as it is on the topic."""
    records = []
    for number in range(until):
        seen = round_at(START_MS + number * APART_MS, **there)
        cluster = msgspec.json.encode(seen.cluster)
        records.append((CLUSTER_KEY, cluster))
        for observation in seen.ongoing:
            record = changed(observation, since_ms=START_MS - 60_000, original=(1,))
            records.append((record.key, msgspec.json.encode(record)))
    return records


def lines(view: ReassignmentView) -> list[dict[str, Any]]:
    written = [json.loads(msgspec.json.encode(line)) for line in view.lines()]
    return [line for line in written if line["kind"] == "partition"]


def seen(view: ReassignmentView, *rounds: ReassignmentRound) -> ReassignmentView:
    for found in rounds:
        view.take(found)
        view.assess()
    return view


def text(view: ReassignmentView, most: int = 99, more: str = "") -> str:
    console = Console(file=io.StringIO(), width=160, color_system=None, markup=False)
    console.print(*rendered(view.lines(), most, more), sep="\n")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_with_a_services_observations_there_is_a_verdict_at_once_and_since_when() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    view.apply_records(recorded())
    dead, fine = lines(seen(view, round_at(SEEN_MS)))
    assert (dead["verdict"], dead["cause"]) == ("dead target", "destination-broker-down")
    assert (fine["verdict"], fine["kind"], fine["at_ms"]) == ("moving", "partition", SEEN_MS)
    assert dead["age_seconds"] == (SEEN_MS - START_MS) / 1000 + 60
    assert fine["idle_seconds"] == 0


def test_without_one_it_says_what_a_few_observations_tell_and_not_since_when() -> None:
    rounds = [round_at(SEEN_MS - n * 2_000) for n in (3, 2, 1, 0)]
    view = seen(ReassignmentView(ClusterState("c", {})), *rounds)
    dead, fine = lines(view)
    assert (fine["verdict"], "cause" in fine) == ("moving", False)
    # Its broker has been down for minutes; all that was seen is that nothing moved for six seconds.
    assert (dead["verdict"], dead["cause"]) == ("measuring", "destination-broker-down")
    for line in (fine, dead):
        assert not {"age_seconds", "idle_seconds"} & line.keys()
    drawn = " ".join(text(view, more="--for 70s observes for longer").split())
    for said in (
        "dead-0: measuring (destination-broker-down), and no copy grows",
        "broker 5, away 6.0 s, doesn't answer, not registered",
        "start broker 5",
        "seen for 6.0 s only, and a restart takes up to a minute; --for 70s observes for longer",
    ):
        assert said in drawn
    assert "fine-0:" not in drawn


def test_who_looks_for_longer_sees_that_the_destination_stays_away() -> None:
    rounds = [round_at(SEEN_MS - n * 2_000) for n in range(35, -1, -1)]
    dead, fine = lines(seen(ReassignmentView(ClusterState("c", {})), *rounds))
    assert (dead["verdict"], dead["cause"]) == ("dead target", "destination-broker-down")
    assert fine["verdict"] == "moving"


class Observer:
    """Stands for a cluster that is observed: rounds one after the other, each when it is asked."""

    def __init__(self, _: object) -> None:
        self.number = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def observe(self) -> ReassignmentRound:
        self.number += 1
        return round_at(START_MS + self.number * APART_MS)


@pytest.mark.parametrize(
    ("arguments", "number"), [([], 4), (["--for", "10s"], 6), (["--for", "1"], 4)]
)
def test_it_looks_for_as_long_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], number: int
) -> None:
    passed = [0.0]

    async def pass_by(seconds: float) -> None:
        passed[0] += seconds

    made: list[Observer] = []
    monkeypatch.setattr(command.asyncio, "sleep", pass_by)
    monkeypatch.setattr(command.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(
        command, "ReassignmentObserver", lambda c: made.append(Observer(c)) or made[0]
    )
    monkeypatch.setattr(command, "connect", lambda _: SimpleNamespace(cluster="c"))
    monkeypatch.setattr(command, "read_if_allowed", lambda *_: [])
    ran = CliRunner().invoke(main, ["reassignments", "--format", "json", *arguments])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert made[0].number == number
    kinds = [json.loads(line)["kind"] for line in ran.stdout.splitlines()]
    assert kinds == ["partition", "partition", "throttle", "throttle"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "soon"], "'soon' is not a time up to a day, such as 10s, 2m or 1h"),
        (["--for", "0s"], "'0s' is not a time"),
        (["--for", "10s", "--watch"], "cannot be combined with --watch or --service"),
        (["--for", "10s", "--service", "http://h"], "cannot be combined with --watch or --service"),
        (["--service", "http://h", "-b", "h:9092"], "leave --bootstrap-servers out"),
        (["--service", "http://h", "-X", "a=b"], "leave --kafka out"),
        (["--token-file", "t"], "--token-file needs a service: name it with --service URL"),
    ],
)
def test_options_that_contradict_are_refused(arguments: list[str], said: str) -> None:
    ran = CliRunner().invoke(main, ["reassignments", *arguments])
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


def test_observations_of_a_service_that_stopped_long_ago_are_left_out() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    view.apply_records(recorded(until=3))
    (_, fine) = lines(seen(view, round_at(SEEN_MS)))
    assert "age_seconds" not in fine
    assert fine["verdict"] == "measuring"


def test_what_is_no_longer_listed_is_over() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    view.apply_records(recorded())
    (fine,) = lines(seen(view, round_at(SEEN_MS, dead=False)))
    assert fine["topic"] == "fine"
    assert lines(seen(view, round_at(SEEN_MS + 1, dead=False, fine=False))) == []


def test_a_round_that_could_list_nothing_ends_nothing_and_says_what_is_missing() -> None:
    view = seen(ReassignmentView(ClusterState("c", {})), round_at(SEEN_MS))
    seen(view, ReassignmentRound(cluster_observation(SEEN_MS, missing=("the list",)), False, ()))
    assert len(lines(view)) == 2
    assert [one.what for one in view.lines() if isinstance(one, MissingLine)] == ["the list"]


def test_malformed_records_of_a_service_are_passed_over() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    view.apply_records([(b"x", b"{"), (b"x", None), (CLUSTER_KEY, b"[]"), *recorded()])
    assert len(lines(seen(view, round_at(SEEN_MS)))) == 2


def test_throttles_that_nothing_needs_have_what_takes_them_off() -> None:
    view = seen(ReassignmentView(ClusterState("c", {})), round_at(SEEN_MS))
    broker, topic = (line for line in view.lines() if isinstance(line, ThrottleLine))
    assert json.loads(msgspec.json.encode(broker))["kind"] == "throttle"
    assert (broker.on, broker.name) == ("broker", "6")
    assert (topic.on, topic.name) == ("topic", "left")
    assert "--delete-config" in topic.advice


def test_the_table_has_the_worst_first_and_below_what_is_wrong() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    view.apply_records(recorded())
    drawn = text(seen(view, round_at(SEEN_MS)))
    assert drawn.index("dead-0") < drawn.index("fine-0")
    for said in (
        "1 → 5",
        "dead-0: dead target (destination-broker-down)",
        "start broker 5",
        "6.1 MB",
        "20 kB/s",
        "never",
        "orphaned throttle on the topic left",
    ):
        assert said in drawn
    assert "fine-0:" not in drawn


def test_of_many_only_so_many_are_drawn_and_how_many_more_there_are() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    moving = tuple(
        ongoing_observation(FINE._replace(partition=n), 2, SEEN_MS, n) for n in range(5_000)
    )
    drawn = text(seen(view, ReassignmentRound(cluster_observation(SEEN_MS), True, moving)), most=10)
    assert "4,990 more, none of them worse" in drawn


def test_names_of_topics_are_text_and_no_markup() -> None:
    view = ReassignmentView(ClusterState("c", {}))
    observation = ongoing_observation(FINE._replace(topic="[bold]x[/bold]"), 2, SEEN_MS, 5)
    drawn = text(seen(view, ReassignmentRound(cluster_observation(SEEN_MS), True, (observation,))))
    assert "[bold]x[/bold]-0" in drawn


def test_it_is_among_the_commands_with_its_options() -> None:
    ran = CliRunner().invoke(main, ["reassignments", "--help"])
    assert ran.exit_code == 0
    assert "--watch" in ran.output
    assert "--format" in ran.output
