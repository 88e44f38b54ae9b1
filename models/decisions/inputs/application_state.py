"""What an application's leader said of itself at a rebalance: all that it decided from.

A follower inside the application publishes it (followers/); nothing of it has to be inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment import fields
from caughtup.models.assignment.compact import CompactScenario, read_compact
from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS, RECOMMENDED
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId

_LONG_MAX = (1 << 63) - 1
_STRATEGY = "rack.aware.assignment.strategy"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the follower did: the recommendation that it followed, or why it didn't.

    ``reason`` is a code (``followed``, ``no_recommendation``, ``moved_since`` …), ``message`` a
    sentence. ``active`` and ``standby`` are what it decided for each process.
    """

    followed: str | None
    reason: str
    message: str
    active: Mapping[ProcessId, frozenset[TaskId]]
    standby: Mapping[ProcessId, frozenset[TaskId]]
    follow_up_ms: int | None


@dataclass(frozen=True, slots=True)
class Basis:
    """What a follower's decision depends on besides what it saw of the application.

    ``newest`` is the recommendation that it had read, at least ``age_ms`` old; ``waited``
    follow-ups had passed without one that holds, and ``repeated`` in a row that recommendations
    asked for had brought nothing new. The others are its configs.
    """

    newest: str | None
    age_ms: int
    waited: int
    repeated: int
    follow_up_ms: int
    max_age_ms: int
    follow_ups: int


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """One rebalance as its leader saw it.

    ``at_ms`` is when the broker wrote it down. ``basis`` is None where it isn't told. ``left_out``
    names what the leader may have decided by and didn't tell.
    """

    state_id: str
    at_ms: int
    scenario: CompactScenario
    outcome: Outcome
    basis: Basis | None
    left_out: tuple[str, ...]

    def recommendations(self) -> frozenset[str | None]:
        """Name the recommendations that it was decided with, by their decision ids."""
        newest = None if self.basis is None else self.basis.newest
        return frozenset((self.outcome.followed, newest))

    def is_of(self, generation: StreamsGeneration) -> bool:
        """Return whether it speaks of the rebalance that completed with a generation.

        The processes are the same, and so is what each of them ran before.
        """
        clients = self.scenario.clients
        return clients.keys() == generation.clients.keys() and all(
            clients[process].capacity == client.capacity
            and clients[process].previous_active == generation.previous_active(client)
            for process, client in generation.clients.items()
        )


def find_state(
    generation: StreamsGeneration, states: Sequence[ApplicationState]
) -> ApplicationState | None:
    """Find what the leader told of the rebalance that completed with a generation.

    Of several that fit, the first since the members had joined: follow-ups in which nothing
    changed look alike. ``states`` are in the order in which they were published.
    """
    since_ms = generation.as_of_ms - CLOCK_ALLOWANCE_MS
    return next((one for one in states if one.at_ms >= since_ms and one.is_of(generation)), None)


def read_application_state(record: Mapping[str, Any], at_ms: int) -> ApplicationState:
    """Read a record of caughtup-application-states, as decoded from JSON.

    ``at_ms`` is the record's timestamp. Raises ScenarioError, whose message names the field.
    """
    root = fields.mapping(record, "the state")
    greatest = fields.mapping(root.get("greatest_lags", {}), "greatest_lags")
    clients = {
        process: {
            **(client := fields.mapping(value, f"clients.{process:.80}")),
            "lags": fields.mapping(client.get("lags", {}), "lags"),
        }
        for process, value in fields.required_mapping(root, "clients", "").items()
    }
    config = dict(fields.mapping(root.get("config", {}), "config"))
    left_out: tuple[str, ...] = ()
    if config.get(_STRATEGY, "none") != "none":
        left_out = (f"{_STRATEGY} is {config[_STRATEGY]!r:.40}, and replicas' racks aren't told",)
        config[_STRATEGY] = "none"
    data = {
        "name": None,
        "assignor": RECOMMENDED,
        "config": config,
        "tasks": fields.required_mapping(root, "tasks", ""),
        "greatest_lags": greatest,
        "clients": clients,
    }
    scenario = read_compact(data)
    scenario.expanded()  # raises where a lag is missing
    return ApplicationState(
        state_id=fields.required_string(root, "state_id", ""),
        at_ms=at_ms,
        scenario=scenario,
        outcome=_outcome(fields.mapping(root.get("outcome", {}), "outcome")),
        basis=_basis(fields.mapping(root["follower"], "follower")) if "follower" in root else None,
        left_out=left_out,
    )


def _outcome(outcome: Mapping[str, Any]) -> Outcome:
    given = {
        fields.parse(ProcessId.parse, process, "outcome.assignment"): fields.mapping(
            value, f"outcome.assignment.{process:.80}"
        )
        for process, value in fields.mapping(outcome.get("assignment", {}), "assignment").items()
    }
    follow_up = outcome.get("follow_up_ms")
    return Outcome(
        followed=fields.optional_string(outcome.get("followed"), "outcome.followed"),
        reason=fields.required_string(outcome, "reason", "outcome"),
        message=fields.optional_string(outcome.get("message"), "outcome.message") or "",
        active={process: _tasks(value, "active") for process, value in sorted(given.items())},
        standby={process: _tasks(value, "standby") for process, value in sorted(given.items())},
        follow_up_ms=None
        if follow_up is None
        else fields.integer(follow_up, "outcome.follow_up_ms", 0, _LONG_MAX),
    )


def _basis(follower: Mapping[str, Any]) -> Basis:
    counts = {
        name: fields.integer(
            fields.required(follower, name, "follower"), f"follower.{name}", 0, _LONG_MAX
        )
        for name in ("waited", "follow_up_ms", "max_age_ms", "follow_ups")
    }
    newest = {
        name: fields.integer(follower.get(name, 0) or 0, f"follower.{name}", 0, _LONG_MAX)
        for name in ("age_ms", "repeated")
    }
    return Basis(
        newest=fields.optional_string(follower.get("newest"), "follower.newest"),
        **counts,
        **newest,
    )


def _tasks(given: Mapping[str, Any], role: str) -> frozenset[TaskId]:
    place = f"outcome.assignment.{role}"
    return frozenset(
        fields.parse(TaskId.parse, text, place) for text in fields.array(given.get(role, ()), place)
    )
