"""A Connect group's rounds, in the form of ``caughtup assign``: read, decided in order, written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment import fields
from caughtup.models.connect.decision import Decision, WorkerDecision
from caughtup.models.connect.eager import decide_eager
from caughtup.models.connect.incremental import decide_incremental
from caughtup.models.connect.names import Names, written
from caughtup.models.connect.round import MAX_DELAY_MS, NO_MEMORY, Round
from caughtup.models.connect.worker import owned_after
from caughtup.models.errors import ScenarioError
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.connect_protocol import NOTHING

INCREMENTAL, EAGER = "connect_incremental", "connect_eager"
#: Stories by the names of their assignors, which tell them from scenarios of Kafka Streams.
CONNECT_ASSIGNORS = (INCREMENTAL, EAGER)

#: Nobody has as many tasks in a group, and a line could claim billions in a few bytes.
MOST_TASKS = 1_000_000
_MAX_DELAY = "scheduled.rebalance.max.delay.ms"
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Told:
    """A round of a story. ``leader`` is the worker that decides it."""

    leader: str
    round: Round


@dataclass(frozen=True, slots=True)
class Story:
    """A group's rounds, in their order."""

    assignor: str
    max_delay_ms: int
    rounds: tuple[Told, ...]


def parse_story(data: Mapping[str, Any]) -> Story:
    """Read a story, as decoded from JSON.

    Raises ScenarioError, whose message names the field: ``bad_field``, ``missing_field``,
    ``unknown_config``, ``unsupported`` (the assignor), ``no_workers`` or ``ambiguous``.
    """
    root = fields.mapping(data, "the story")
    fields.optional_string(root.get("name"), "name")
    assignor = fields.required_string(root, "assignor", "")
    if assignor not in CONNECT_ASSIGNORS:
        known = ", ".join(CONNECT_ASSIGNORS)
        raise ScenarioError("unsupported", f"assignor: {assignor!r:.80} is not among {known}")
    rounds = [
        fields.mapping(one, f"rounds.{number}")
        for number, one in enumerate(fields.array(fields.required(root, "rounds", ""), "rounds"))
    ]
    connectors = [_connectors(one, f"rounds.{number}") for number, one in enumerate(rounds)]
    names = Names(connectors)
    return Story(
        assignor,
        _max_delay_ms(fields.mapping(root.get("config", {}), "config")),
        tuple(
            _told(one, configured, names, f"rounds.{number}")
            for number, (one, configured) in enumerate(zip(rounds, connectors, strict=True))
        ),
    )


def decide_story(story: Story) -> list[Decision]:
    """Decide each round by what the leader remembers of the one before, if it led that one."""
    return list(_decisions(story))


def tell(story: Story, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Write the decisions as ``caughtup assign`` prints them, but for the story's name."""
    return {
        "rounds": [
            {
                "delay_ms": decision.delay_ms,
                "workers": {
                    name: _told_to(story, told.round, name, one)
                    for name, one in decision.workers.items()
                },
            }
            for told, decision in zip(story.rounds, decisions, strict=True)
        ]
    }


def _decisions(story: Story) -> Iterator[Decision]:
    leader, memory = None, NO_MEMORY
    for told in story.rounds:
        if story.assignor == EAGER:
            yield decide_eager(told.round)
            continue
        if told.leader != leader:
            leader, memory = told.leader, NO_MEMORY
        decision, memory = decide_incremental(told.round, memory, story.max_delay_ms)
        yield decision


def _told_to(story: Story, round_: Round, name: str, one: WorkerDecision) -> dict[str, list[str]]:
    owned = NOTHING if story.assignor == EAGER else round_.workers[name]
    return {
        "assigned": written(one.assigned),
        "revoked": written(one.revoked),
        "after": written(owned_after(owned, one)),
    }


def _max_delay_ms(config: Mapping[str, Any]) -> int:
    for name in config:
        if name != _MAX_DELAY:
            raise ScenarioError("unknown_config", f"config: {name!r:.80} is not known")
    return fields.integer(config.get(_MAX_DELAY, MAX_DELAY_MS), f"config.{_MAX_DELAY}", 0, _INT_MAX)


def _connectors(one: Mapping[str, Any], place: str) -> dict[str, int]:
    connectors = fields.required_mapping(one, "connectors", place)
    counts = {
        name: fields.integer(count, f"{place}.connectors.{name:.80}", 0, MOST_TASKS)
        for name, count in connectors.items()
    }
    if sum(counts.values()) > MOST_TASKS:
        raise ScenarioError("bad_field", f"{place}.connectors: more than {MOST_TASKS:,} tasks")
    return counts


def _told(one: Mapping[str, Any], connectors: Mapping[str, int], names: Names, place: str) -> Told:
    time_ms = fields.integer(
        fields.required(one, "time_ms", place), f"{place}.time_ms", 0, LATEST_MS
    )
    fields.integer(fields.required(one, "generation", place), f"{place}.generation", 0, _INT_MAX)
    failed = one.get("previous_generation_failed", False)
    if not isinstance(failed, bool):
        raise ScenarioError("bad_field", f"{place}.previous_generation_failed: is not a boolean")
    given = fields.required_mapping(one, "workers", place)
    if not given:
        raise ScenarioError("no_workers", f"{place}.workers: there is none")
    leader = fields.required_string(one, "leader", place)
    if leader not in given:
        raise ScenarioError("bad_field", f"{place}.leader: {leader!r:.80} is not among the workers")
    workers = {}
    for name, worker in given.items():
        at = f"{place}.workers.{name:.80}"
        owned = fields.array(
            fields.required(fields.mapping(worker, at), "owned", at), f"{at}.owned"
        )
        workers[name] = names.read((fields.string(item, f"{at}.owned") for item in owned), at)
    return Told(leader, Round(time_ms, connectors, workers, last_completed=not failed))
