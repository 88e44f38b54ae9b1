"""Generate recorded histories of groups, from seeds, with the decisions of Kafka's assignor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from caughtup.bench.movement.changes import Change, Variety, changed_group
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import TaskId
from caughtup.models.replay.recorded import RecordedGeneration
from caughtup.models.simulation.rounds import end_offsets, next_scenario

#: The time of the first generation of every generated history, in ms since 1970.
START_MS = 1_790_000_000_000
_RUNNING = -2


def generated_history(
    group: str, change: Change, variety: Variety, seed: int, most_generations: int = 1_000
) -> list[RecordedGeneration]:
    """Return a changed group's generations, a probing interval apart, until it is balanced.

    HighAvailabilityTaskAssignor decides each. Racks are not recorded, as they are not on the wire.
    """
    scenario = changed_group(change, variety._replace(racks=False), seed)
    ends = end_offsets(scenario)
    recorded: list[RecordedGeneration] = []
    while len(recorded) < most_generations:
        decision = decide(scenario)
        number = len(recorded) + 1
        given = decision.to_dict()
        recorded.append(
            RecordedGeneration(
                group=group,
                generation=number,
                as_of_ms=START_MS + (number - 1) * scenario.configs.probing_rebalance_interval_ms,
                scenario=described(f"{group}/{number}", scenario),
                assigned={
                    "probing_rebalance_needed": given["probing_rebalance_needed"],
                    "clients": {
                        process: {**one, "warmup": []} for process, one in given["clients"].items()
                    },
                },
                offset_sums={
                    str(client.process_id): _offset_sums(client, ends)
                    for client in scenario.clients
                },
            )
        )
        if not decision.probing_rebalance_needed:
            break
        scenario = next_scenario(scenario, decision, ends)
    return recorded


def described(name: str, scenario: Scenario) -> dict[str, object]:
    """Return a scenario without racks in the format of ``caughtup assign``."""
    configs = scenario.configs
    return {
        "name": name,
        "assignor": scenario.assignor,
        "config": {
            "acceptable.recovery.lag": configs.acceptable_recovery_lag,
            "max.warmup.replicas": configs.max_warmup_replicas,
            "num.standby.replicas": configs.num_standby_replicas,
            "probing.rebalance.interval.ms": configs.probing_rebalance_interval_ms,
            "rack.aware.assignment.tags": list(configs.rack_aware_assignment_tags),
        },
        "tasks": {str(task): {"stateful": True} for task in scenario.stateful}
        | {str(task): {"stateful": False} for task in scenario.stateless},
        "clients": {str(client.process_id): _described(client) for client in scenario.clients},
    }


def _described(client: Client) -> dict[str, object]:
    return {
        "capacity": client.capacity,
        "tags": dict(client.tags),
        "previous_active": [str(task) for task in sorted(client.previous_active)],
        "previous_standby": [str(task) for task in sorted(client.previous_standby)],
        "lags": {str(task): lag for task, lag in sorted(client.lags.items())},
    }


def _offset_sums(client: Client, ends: Mapping[TaskId, int]) -> dict[str, int]:
    """Return the offset sums that a client would report; none for tasks without local state."""
    return {
        str(task): _RUNNING if task in client.previous_active else ends[task] - max(lag, 0)
        for task, lag in sorted(client.lags.items())
        if task in client.previous_active or lag < ends[task]
    }


def write_histories(directory: Path, histories: Iterable[Sequence[RecordedGeneration]]) -> int:
    """Add histories to a table of generations, like the Spark job; return their number.

    Raises ImportError if Spark is not installed.
    """
    import pyarrow
    import pyarrow.parquet

    from caughtup.pipelines.generations.schema import GROUP_GENERATIONS
    from caughtup.pipelines.spark.arrow import arrow_schema

    schema = arrow_schema(GROUP_GENERATIONS)
    rows = [_table_row(one) for history in histories for one in history]
    pyarrow.parquet.write_to_dataset(
        pyarrow.Table.from_pylist(rows, schema=schema),
        directory,
        partition_cols=["date", "group_bucket"],
    )
    return len(rows)


def _table_row(one: RecordedGeneration) -> dict[str, object]:
    from caughtup.pipelines.schema import bucket

    as_of = datetime.fromtimestamp(one.as_of_ms / 1000, UTC)
    members = [
        {
            "member_id": f"{process}-1",
            "client_id": f"{process}-StreamThread-1-consumer",
            "host": "/127.0.0.1",
            "process_id": process,
            "offset_sums": list(one.offset_sums[process].items()),
            "active": given["active"],
            "standby": given["standby"],
        }
        for process, given in one.assigned["clients"].items()
    ]
    return {
        "as_of": as_of,
        "group": one.group,
        "generation": one.generation,
        "leader": members[0]["member_id"],
        "next_rebalance": as_of if one.assigned["probing_rebalance_needed"] else None,
        "members": members,
        "scenario": msgspec.json.encode(one.scenario).decode(),
        "doubts": list(one.doubts),
        "inferred": [],
        "assumed": [],
        "error": None,
        "log_partition": 0,
        "log_offset": one.generation,
        "date": as_of.date(),
        "group_bucket": bucket(one.group),
    }
