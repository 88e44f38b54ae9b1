"""A scenario in which tasks are assigned by racks (KIP-925), as a hypothesis has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from caughtup.models.assignment.racks import TaskReplicas, find_racks
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId
from caughtup.models.learning.ranges import Algorithm
from caughtup.models.partition_assignor.clients import Client


def with_racks(
    scenario: Scenario,
    algorithm: Algorithm,
    inputs: GenerationInputs,
    processes: Mapping[ProcessId, Client],
) -> Scenario:
    """Return a scenario with an algorithm's strategy and costs, and the racks that these go by.

    Raises ScenarioError ``missing_field`` where nobody looked the replicas' racks up.
    """
    if inputs.replicas is None:
        raise ScenarioError("missing_field", "replicas: nobody looked up their racks")
    traffic, non_overlap = algorithm.costs or (None, None)
    configs = replace(
        scenario.configs,
        rack_aware_assignment_strategy=algorithm.strategy,
        rack_aware_assignment_traffic_cost=traffic,
        rack_aware_assignment_non_overlap_cost=non_overlap,
    )
    tasks = inputs.scenario.tasks
    task_replicas = TaskReplicas(
        {task: tuple(sorted(one.sources)) for task, one in tasks.items()},
        {task: tuple(sorted(one.changelogs)) for task, one in tasks.items()},
        inputs.replicas,
    )
    # The public interface knows of one rack for a process, Kafka itself of all.
    public = algorithm.assignor == "public_sticky"
    own = {id_: one.racks[0] if public else one.rack for id_, one in processes.items()}
    clients = tuple(replace(client, rack=own[client.process_id]) for client in scenario.clients)
    racks = find_racks(task_replicas, configs, [client.rack for client in clients])
    return replace(
        scenario, configs=configs, clients=clients, task_replicas=task_replicas, racks=racks
    )
