"""Which process gets which tasks: what the configured assignor decides for the clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.racks import TaskReplicas, find_racks
from caughtup.models.assignment.scenario import Client as AssignorClient
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.kafka.sticky.assignor import decide_fallback_prior, decide_sticky
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.clients import Client
from caughtup.models.partition_assignor.rebalance import Rebalance
from caughtup.models.partition_assignor.task_orders import leader_orders
from caughtup.models.partition_assignor.task_partitions import TaskPartitions

PUBLIC_STICKY = "public_sticky"
#: Assignors that decide without lags as well as with them.
_NEEDS_NO_LAGS = frozenset({"sticky", PUBLIC_STICKY})


def assignor_in_charge(rebalance: Rebalance, *, lags_known: bool) -> str:
    """Name the assignor that decides.

    Without end offsets that is the fallback, which gives clients back what they had, unless one is
    configured that takes no notice of lags. Source: StreamsPartitionAssignor.createTaskAssignor.
    """
    if lags_known or rebalance.assignor in _NEEDS_NO_LAGS:
        return rebalance.assignor
    return "fallback_prior"


def place_tasks(
    rebalance: Rebalance,
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, Client],
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    assignor: str,
    other: Callable[[Scenario], Decision] | None = None,
) -> Decision:
    """Decide which process gets which tasks. ``clients`` are in the order in which they were met.

    By ``other`` where there is one. Raises ScenarioError as the assignors do.
    """
    scenario = assignor_scenario(rebalance, tasks, clients, lags, assignor)
    if other is not None:
        return other(scenario)
    arrival = tuple(clients)
    if assignor == PUBLIC_STICKY:
        return decide_public_sticky(scenario, arrival=arrival)
    if assignor == "sticky":
        return decide_sticky(scenario, leader_orders(arrival, tasks, rebalance.release))
    if assignor == "fallback_prior":
        return decide_fallback_prior(scenario, leader_orders(arrival, tasks, rebalance.release))
    return decide(scenario)


def assignor_scenario(
    rebalance: Rebalance,
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, Client],
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    assignor: str,
) -> Scenario:
    """Put together what an assignor is given."""
    readers = tasks.readers
    given: list[AssignorClient] = []
    for process, client in sorted(clients.items()):
        active, standby = client.previous_tasks(readers)
        given.append(
            AssignorClient(
                process_id=process,
                capacity=client.capacity,
                previous_active=active,
                previous_standby=standby,
                lags=lags[process],
                tags=client.tags,
                # The public interface knows of one rack for a process, Kafka itself of all.
                rack=client.racks[0] if assignor == PUBLIC_STICKY else client.rack,
            )
        )
    task_replicas = None
    if rebalance.configs.rack_aware_assignment_strategy != "none":
        changelogs = {task: tasks.changelogs.get(task, ()) for task in tasks.sources}
        task_replicas = TaskReplicas(tasks.sources, changelogs, rebalance.replicas)
    return Scenario(
        name=rebalance.name,
        assignor=assignor,
        configs=rebalance.configs,
        stateful=tasks.stateful,
        stateless=tasks.stateless,
        clients=tuple(given),
        task_replicas=task_replicas,
        racks=find_racks(task_replicas, rebalance.configs, [client.rack for client in given]),
        release=rebalance.release,
    )
