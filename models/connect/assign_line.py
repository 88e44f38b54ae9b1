"""A Connect group's rounds on a line of ``caughtup assign``: parsed, decided in order, written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment import fields
from caughtup.models.connect.assignors import decide_eager, decide_incremental
from caughtup.models.connect.decision import (
    MAX_DELAY_MS,
    NO_MEMORY,
    ConnectDecision,
    Round,
    WorkerDecision,
    owned_after,
)
from caughtup.models.connect.work import Names, written
from caughtup.models.errors import ScenarioError
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.connect_protocol import NOTHING

INCREMENTAL, EAGER = "connect_incremental", "connect_eager"
#: A line with one of these assignors is a Connect group's rounds; others are Streams scenarios.
CONNECT_ASSIGNORS = (INCREMENTAL, EAGER)

#: More tasks than any group has; without a bound, a line of a few bytes could ask for billions.
MOST_TASKS = 1_000_000
_MAX_DELAY = "scheduled.rebalance.max.delay.ms"
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class LedRound:
    """A round, and the worker that leads the group in it."""

    leader: str
    round: Round


@dataclass(frozen=True, slots=True)
class GroupRounds:
    """A group's rounds in order, with its assignor and its longest delay in ms."""

    assignor: str
    max_delay_ms: int
    rounds: tuple[LedRound, ...]


def parse_rounds(data: object) -> GroupRounds:
    """Return the rounds of a line that was decoded from JSON.

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
    return GroupRounds(
        assignor,
        _max_delay_ms(fields.mapping(root.get("config", {}), "config")),
        tuple(
            _led_round(one, configured, names, f"rounds.{number}")
            for number, (one, configured) in enumerate(zip(rounds, connectors, strict=True))
        ),
    )


def decide_rounds(group: GroupRounds) -> list[ConnectDecision]:
    """Return each round's decision; a leader remembers the previous round if it led that one."""
    return list(_decisions(group))


def decisions_json(group: GroupRounds, decisions: Sequence[ConnectDecision]) -> dict[str, object]:
    """Return the decisions as ``caughtup assign`` prints them, without the line's name."""
    return {
        "rounds": [
            {
                "delay_ms": decision.delay_ms,
                "workers": {
                    name: _worker_json(group, led.round, name, one)
                    for name, one in decision.workers.items()
                },
            }
            for led, decision in zip(group.rounds, decisions, strict=True)
        ]
    }


def _decisions(group: GroupRounds) -> Iterator[ConnectDecision]:
    leader, memory = None, NO_MEMORY
    for led in group.rounds:
        if group.assignor == EAGER:
            yield decide_eager(led.round)
            continue
        if led.leader != leader:
            leader, memory = led.leader, NO_MEMORY
        decision, memory = decide_incremental(led.round, memory, group.max_delay_ms)
        yield decision


def _worker_json(
    group: GroupRounds, round_: Round, name: str, one: WorkerDecision
) -> dict[str, list[str]]:
    owned = NOTHING if group.assignor == EAGER else round_.workers[name]
    return {
        "assigned": written(one.assigned),
        "revoked": written(one.revoked),
        "after": written(owned_after(owned, one)),
    }


def _max_delay_ms(config: Mapping[str, object]) -> int:
    for name in config:
        if name != _MAX_DELAY:
            raise ScenarioError("unknown_config", f"config: {name!r:.80} is not known")
    return fields.integer(config.get(_MAX_DELAY, MAX_DELAY_MS), f"config.{_MAX_DELAY}", 0, _INT_MAX)


def _connectors(one: Mapping[str, object], place: str) -> dict[str, int]:
    connectors = fields.required_mapping(one, "connectors", place)
    counts = {
        name: fields.integer(count, f"{place}.connectors.{name:.80}", 0, MOST_TASKS)
        for name, count in connectors.items()
    }
    if sum(counts.values()) > MOST_TASKS:
        raise ScenarioError("bad_field", f"{place}.connectors: more than {MOST_TASKS:,} tasks")
    return counts


def _led_round(
    one: Mapping[str, object], connectors: Mapping[str, int], names: Names, place: str
) -> LedRound:
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
    return LedRound(leader, Round(time_ms, connectors, workers, last_completed=not failed))
