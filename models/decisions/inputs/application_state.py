"""The inputs of a rebalance as the application's leader published them (``application_state``).

A follower inside the application publishes them (followers/), so nothing has to be inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.compact import CompactScenario, read_compact
from caughtup.models.decisions.inputs.gathering import (
    CLOCK_ALLOWANCE_MS,
    RECOMMENDED,
    GenerationInputs,
)
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum
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
from caughtup.models.records.recommendations import KnownConfigRecord

_STRATEGY = "rack.aware.assignment.strategy"


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """A rebalance as its leader published it.

    ``at_ms`` is the record's timestamp by the broker. ``outcome`` is the follower's, ``active`` and
    ``standby`` are the tasks that it assigned to each process. ``follower`` has the other inputs of
    its decision, None if it didn't publish them. ``left_out`` names inputs that the leader may have
    decided by and didn't publish.
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
        """Return the decision ids of the recommendations that it was decided with."""
        newest = None if self.follower is None else or_none(self.follower.newest)
        return frozenset((or_none(self.outcome.followed), newest))

    def is_of(self, generation: StreamsGeneration) -> bool:
        """Return whether it is of the rebalance that completed with a generation.

        The processes and the tasks that each ran before must be the same.
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
    """Return the state that the leader published of the rebalance that completed with a generation.

    If several match, as in follow-up rebalances without a change, it is the first one since the
    members joined. ``states`` are in the order of publication.
    """
    since_ms = generation.as_of_ms - CLOCK_ALLOWANCE_MS
    return next((one for one in states if one.at_ms >= since_ms and one.is_of(generation)), None)


def read_state(
    key: bytes | None, value: bytes | None, at_ms: int
) -> tuple[str, ApplicationState | None]:
    """Return the group and the leader's state of a record, None for a tombstone.

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
    """Return a record with typed ids; ``at_ms`` is its timestamp.

    Raises ScenarioError, whose message names the field.
    """
    config = dict(record.config)
    left_out: tuple[str, ...] = ()
    if config.get(_STRATEGY, "none") != "none":
        left_out = (
            f"{_STRATEGY} is {config[_STRATEGY]!r:.40}, and the follower does not report the racks of replicas",
        )
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


APPLICATION = "application"


def leader_inputs(
    generation: StreamsGeneration, state: ApplicationState, gathered: GenerationInputs
) -> GenerationInputs:
    """Return the inputs that the leader published in place of the gathered ones.

    Nothing is inferred or assumed then; unknown are those that it left out, and members whose
    subscriptions can't be read.
    """
    name = f"{generation.group}/{generation.generation}"
    skipped = [doubt for doubt in gathered.unknown if doubt.startswith("member left out")]
    ends = {
        task: _end_offset_sum(generation, state, task) or gathered.ends.get(task)
        for task, one in state.scenario.tasks.items()
        if one.stateful
    }
    return replace(
        gathered,
        scenario=replace(state.scenario, name=name),
        ends=ends,
        unknown=(*skipped, *state.left_out),
        inferred=(),
        assumed=(),
        changelogs_from=APPLICATION,
        tentative=False,
        contradicted=tuple(_contradicted(state, gathered)),
        configs=tuple(
            KnownConfigRecord(
                name, _text(value), _text(value) if isinstance(value, list) else value, "read"
            )
            for name, value in sorted(state.scenario.config.items())
            if value is not None
        ),
    )


def _text(value: int | str | list[str]) -> str:
    return (",".join(value) or "none") if isinstance(value, list) else str(value)


def _contradicted(state: ApplicationState, gathered: GenerationInputs) -> Iterator[str]:
    """Yield the configs that differ between the settings and the application."""
    runs = state.scenario.config
    for name, value in sorted(gathered.scenario.config.items()):
        if name not in gathered.assumed and name in runs and runs[name] != value:
            yield f"{name}: {value} in the settings, {runs[name]} in the application"


def _end_offset_sum(
    generation: StreamsGeneration, state: ApplicationState, task: TaskId
) -> EndOffsetSum | None:
    """Return a task's end offset sum by clients' lags and offset sums; None if none is usable.

    A client that reported nothing lags by the whole log; another by what follows its offset sum,
    unless that lies beyond the end.
    """
    found: int | None = None
    for process in state.scenario.clients:
        lag = state.scenario.lag_of(process, task)
        offset_sum = generation.clients[process].offset_sums.get(task, 0)
        if lag is None or lag < 0 or offset_sum < 0:
            continue
        if offset_sum == 0:
            return EndOffsetSum(lag, lag)
        found = max(found or 0, offset_sum + lag)
    return None if found is None else EndOffsetSum(found, found)
