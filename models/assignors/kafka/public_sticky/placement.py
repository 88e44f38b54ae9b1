"""Whether Kafka's public assignors may assign by rack, and by which racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment.racks import PartitionRacks, TaskReplicas
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.ids import TaskId, TopicPartition

#: The racks of what each task reads.
TaskRacks = Mapping[TaskId, PartitionRacks]
#: A partition that a task reads, whether as a source, and whether as a changelog.
_Role = tuple[TopicPartition, bool, bool]


@dataclass(frozen=True, slots=True)
class PublicRacks:
    """The racks of a group in which every client has one, and the costs that are configured.

    ``clients`` has each client's, in ProcessId order. ``actives`` has the racks of all that a task
    reads, sources and changelogs, and ``standbys`` of the changelogs; each is None if something
    that any task reads so has no known rack.
    """

    clients: Sequence[str]
    costs: Costs
    actives: TaskRacks | None
    standbys: TaskRacks | None


def find_public_racks(scenario: Scenario) -> PublicRacks | None:
    """Find the racks of clients and replicas; None when Kafka leaves all of them alone.

    These rules are not those of KIP-925: both costs must be configured although they have
    defaults, a partition counts as placed as soon as one replica has a rack, and the changelogs
    count without standbys, too.

    Source: TaskAssignmentUtils.canPerformRackAwareOptimization, hasValidRackInformation.
    """
    configs, task_replicas = scenario.configs, scenario.task_replicas
    traffic = configs.rack_aware_assignment_traffic_cost
    non_overlap = configs.rack_aware_assignment_non_overlap_cost
    clients = [client.rack for client in scenario.clients if client.rack is not None]
    if task_replicas is None or traffic is None or non_overlap is None:
        return None
    if len(clients) < len(scenario.clients):
        return None
    roles = _roles(scenario, task_replicas)
    standbys = {
        task: [role for role in roles[task] if _is_changelog(role)] for task in scenario.stateful
    }
    costs = Costs(traffic, non_overlap)
    if not all(standbys.values()):
        # A changelog that the scenario doesn't name is on brokers that it doesn't name either.
        return PublicRacks(clients, costs, None, None)
    known = _known_racks(task_replicas, roles)
    return PublicRacks(clients, costs, _look_up(roles, known), _look_up(standbys, known))


def _is_changelog(role: _Role) -> bool:
    return role[2]


def _roles(scenario: Scenario, task_replicas: TaskReplicas) -> Mapping[TaskId, list[_Role]]:
    roles: dict[TaskId, list[_Role]] = {}
    stateful = frozenset(scenario.stateful)
    for task in (*scenario.stateful, *scenario.stateless):
        sources = frozenset(task_replicas.sources[task])
        changelogs = frozenset(task_replicas.changelogs[task] if task in stateful else ())
        roles[task] = [
            (partition, partition in sources, partition in changelogs)
            for partition in sorted(sources | changelogs)
        ]
    return roles


def _known_racks(
    task_replicas: TaskReplicas, roles: Mapping[TaskId, list[_Role]]
) -> Mapping[_Role, frozenset[str]]:
    """Find the racks of partitions. Kafka keeps them for one task of those that read one alike.

    Source: StreamsPartitionAssignor.buildApplicationState, RackUtils.
    """
    known: dict[_Role, frozenset[str]] = {}
    for role, tasks in Counter(role for own in roles.values() for role in own).items():
        replicas = task_replicas.replicas.get(role[0], ())
        racks = frozenset(rack for rack in replicas if rack is not None)
        if racks and tasks == 1:
            known[role] = racks
    return known


def _look_up(
    tasks: Mapping[TaskId, list[_Role]], known: Mapping[_Role, frozenset[str]]
) -> TaskRacks | None:
    if any(role not in known for own in tasks.values() for role in own):
        return None
    return {task: tuple(known[role] for role in own) for task, own in tasks.items()}
