"""A follower's records: the leader's on application-states, each member's on task-positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from caughtup.followers.python.topology import Topology
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.following.follower import (
    FOLLOWED,
    FollowerDecision,
    FollowerInputs,
    Patience,
)
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import ClientMetadata as GroupClient
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.records.application_states import (
    FORMAT,
    ApplicationStateRecord,
    FollowerRecord,
    GivenTasks,
    OutcomeRecord,
)
from caughtup.models.records.keys import encode_copy
from caughtup.models.records.scenarios import Configs, PartitionPair, ScenarioClient, ScenarioTask
from caughtup.models.records.task_positions import FORMAT as POSITION_FORMAT
from caughtup.models.records.task_positions import PositionRecord, Role


def application_state(
    scenario: Scenario,
    topology: Topology,
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, GroupClient],
    decision: FollowerDecision,
    message: str,
) -> ApplicationStateRecord:
    """Return the leader's input and decision; the publisher adds the process and the time.

    A client's lags leave out tasks with the greatest lag of all clients. Source:
    ``caughtup.ApplicationStateRecord``.
    """
    greatest: dict[TaskId, int] = {}
    for one in scenario.clients:
        for task, lag in one.lags.items():
            greatest[task] = max(greatest.get(task, lag), lag)
    return ApplicationStateRecord(
        schema=FORMAT.schema,
        state_id="",
        config=_config(scenario),
        tasks={
            str(task): ScenarioTask(
                stateful=task in tasks.changelogs,
                stores=sorted(topology.tables_of(task)),
                source_partitions=_pairs(sources),
                changelog_partitions=_pairs(tasks.changelogs.get(task, ())),
            )
            for task, sources in sorted(tasks.sources.items())
        },
        clients={
            str(one.process_id): _client(one, clients[one.process_id], greatest)
            for one in scenario.clients
        },
        greatest_lags={str(task): lag for task, lag in sorted(greatest.items())},
        outcome=_outcome(decision, message),
    )


def decided_with(inputs: FollowerInputs, patience: Patience) -> FollowerRecord:
    """Return the follower's own input to the decision. Source: ``GroupFollower``."""
    basis = FollowerRecord(
        follow_up_ms=patience.follow_up_ms,
        max_age_ms=patience.max_age_ms,
        follow_ups=patience.follow_ups,
        waited=inputs.waited,
        repeated=inputs.repeated,
    )
    if isinstance(inputs.newest, FollowedRecommendation):
        basis.newest, basis.age_ms = inputs.newest.decision_id, inputs.age_ms
    return basis


def _config(scenario: Scenario) -> Configs:
    configs = scenario.configs
    return {
        "acceptable.recovery.lag": configs.acceptable_recovery_lag,
        "max.warmup.replicas": configs.max_warmup_replicas,
        "num.standby.replicas": configs.num_standby_replicas,
        "probing.rebalance.interval.ms": configs.probing_rebalance_interval_ms,
        "rack.aware.assignment.tags": list(configs.rack_aware_assignment_tags),
        "rack.aware.assignment.strategy": configs.rack_aware_assignment_strategy,
        "rack.aware.assignment.traffic_cost": configs.rack_aware_assignment_traffic_cost,
        "rack.aware.assignment.non_overlap_cost": configs.rack_aware_assignment_non_overlap_cost,
    }


def _client(client: Client, members: GroupClient, greatest: Mapping[TaskId, int]) -> ScenarioClient:
    return ScenarioClient(
        capacity=client.capacity,
        client_ids=list(members.consumers),
        tags=dict(sorted(client.tags.items())),
        previous_active=_names(client.previous_active),
        previous_standby=_names(client.previous_standby),
        lags={str(task): lag for task, lag in sorted(client.lags.items()) if lag != greatest[task]},
    )


def _outcome(decision: FollowerDecision, message: str) -> OutcomeRecord:
    outcome = OutcomeRecord(
        reason=decision.reason,
        message=message,
        assignment={
            str(process): GivenTasks(_names(active), _names(decision.standby[process]))
            for process, active in sorted(decision.active.items())
        },
    )
    if decision.reason == FOLLOWED and decision.decision_id is not None:
        outcome.followed = decision.decision_id
    if decision.follow_up_ms is not None:
        outcome.follow_up_ms = decision.follow_up_ms
    return outcome


def _names(tasks: Iterable[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def _pairs(partitions: Iterable[TopicPartition]) -> list[PartitionPair]:
    return [(one.topic, one.partition) for one in sorted(partitions)]


#: How often unchanged positions are published again.
_REPEAT_SECONDS = 60.0

Offsets = Mapping[TopicPartition, int]


class PositionReports:
    """Makes records of positions that changed since the last call, and each minute of all."""

    def __init__(self, topology: Topology, group: str, process: ProcessId, client_id: str) -> None:
        self._topology = topology
        self._group = group
        self._process = str(process)
        self._client_id = client_id
        self._published: dict[bytes, PositionRecord] = {}
        self._repeated = 0.0

    def records(
        self,
        restoring: Iterable[TaskId],
        standby: Iterable[TaskId],
        positions: Offsets,
        starts: Offsets,
        ends: Offsets,
        now_ms: int,
        clock: float,
    ) -> dict[bytes, bytes | None]:
        """Return the records to write, by key; a tombstone for a copy that no longer restores.

        ``positions``: the next offsets of changelog partitions; ``starts`` and ``ends``: their
        bounds. ``now_ms`` goes into the records; ``clock`` is monotonic, in s.
        """
        repeat = clock - self._repeated >= _REPEAT_SECONDS
        self._repeated = clock if repeat else self._repeated
        there: dict[bytes, PositionRecord] = {}
        roles: tuple[tuple[Role, Iterable[TaskId]], ...]
        roles = ("restoring", restoring), ("standby", standby)
        for role, tasks in roles:
            for task in sorted(tasks):
                key = encode_copy(self._group, self._process, str(task))
                there[key] = self._position(task, role, positions, starts, ends)
        records: dict[bytes, bytes | None] = {}
        for key, position in there.items():
            if repeat or position != self._published.get(key):
                records[key] = POSITION_FORMAT.encode(replace(position, at_ms=now_ms))
        for key in self._published.keys() - there.keys():
            records[key] = None
        self._published = there
        return records

    def _position(
        self, task: TaskId, role: Role, positions: Offsets, starts: Offsets, ends: Offsets
    ) -> PositionRecord:
        lags: dict[str, int | None] = {}
        leads: dict[str, int | None] = {}
        for one in sorted(self._topology.tables_of(task).values()):
            at, start, end = positions.get(one, 0), starts.get(one), ends.get(one)
            lags[one.topic] = None if end is None else max(0, end - max(at, start or 0))
            leads[one.topic] = None if start is None else max(0, at - start)
        known = [lag for lag in lags.values() if lag is not None]
        return PositionRecord(
            FORMAT.schema,
            self._group,
            self._process,
            self._client_id,
            str(task),
            role,
            sum(known) if len(known) == len(lags) else None,
            lags,
            leads,
        )
