"""What an application's leader published of a rebalance: all that it decided from.

A follower inside the application publishes it (followers/); nothing of it has to be inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment.compact import CompactScenario, read_compact
from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS, RECOMMENDED
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.application_states import (
    FORMAT,
    ApplicationStateRecord,
    FollowerRecord,
    OutcomeRecord,
)
from caughtup.models.records.decoding import BAD_TYPE, RefusedError, require_agreement
from caughtup.models.records.fields import ABSENT, json_values, or_none
from caughtup.models.records.keys import decode_group

_STRATEGY = "rack.aware.assignment.strategy"


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """One rebalance as its leader saw it.

    ``at_ms`` is the record's timestamp by the broker. ``outcome`` is what the follower did, and
    ``active`` and ``standby`` what it assigned to each process. ``follower`` has the other inputs
    of its decision, None where it did not publish them. ``left_out`` names inputs that the leader
    may have decided by and did not publish.
    """

    state_id: str
    at_ms: int
    scenario: CompactScenario
    outcome: OutcomeRecord
    active: Mapping[ProcessId, frozenset[TaskId]]
    standby: Mapping[ProcessId, frozenset[TaskId]]
    follower: FollowerRecord | None
    left_out: tuple[str, ...]

    def recommendations(self) -> frozenset[str | None]:
        """Name the recommendations that it was decided with, by their decision ids."""
        newest = None if self.follower is None else or_none(self.follower.newest)
        return frozenset((or_none(self.outcome.followed), newest))

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


def read_state(
    key: bytes | None, value: bytes | None, at_ms: int
) -> tuple[str, ApplicationState | None]:
    """Decode a record: the group, and its leader's state; None: it is to be forgotten.

    ``at_ms`` is the record's timestamp. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    if record.group is not ABSENT:
        require_agreement(group, record.group)
    try:
        return group, application_state(record, at_ms)
    except ScenarioError as error:
        raise RefusedError(BAD_TYPE, error.message) from None


def application_state(record: ApplicationStateRecord, at_ms: int) -> ApplicationState:
    """Return what a record says, with typed ids; ``at_ms`` is its timestamp.

    Raises ScenarioError, whose message names the field.
    """
    config = dict(record.config)
    left_out: tuple[str, ...] = ()
    if config.get(_STRATEGY, "none") != "none":
        left_out = (f"{_STRATEGY} is {config[_STRATEGY]!r:.40}, and replicas' racks aren't told",)
        config[_STRATEGY] = "none"
    written = json_values(record)
    scenario = read_compact(
        {
            "name": None,
            "assignor": RECOMMENDED,
            "config": config,
            "tasks": written["tasks"],
            "greatest_lags": written.get("greatest_lags", {}),
            "clients": written["clients"],
        }
    )
    scenario.expanded()  # raises where a lag is missing
    given = sorted(
        (
            (ProcessId.parse(process), tasks)
            for process, tasks in (or_none(record.outcome.assignment) or {}).items()
        ),
        key=lambda item: item[0],
    )
    return ApplicationState(
        state_id=record.state_id,
        at_ms=at_ms,
        scenario=scenario,
        outcome=record.outcome,
        active={process: _tasks(or_none(tasks.active)) for process, tasks in given},
        standby={process: _tasks(or_none(tasks.standby)) for process, tasks in given},
        follower=or_none(record.follower),
        left_out=left_out,
    )


def _tasks(texts: Sequence[str] | None) -> frozenset[TaskId]:
    return frozenset(map(TaskId.parse, texts or ()))
