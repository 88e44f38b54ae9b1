"""A group's members, decoded by their leader, and the snapshot from which it decides a rebalance."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.following.placement import ClientStates
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import UNKNOWN_OFFSET_SUM, sum_offsets
from caughtup.models.partition_assignor.rebalance import (
    ClientMetadata,
    MemberSubscription,
    clients_of,
)
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.wire.user_data import SubscriptionInfo, decode_subscription_info

log = logging.getLogger("caughtup.followers")

#: Members' decoded user data, by member id; None if they could not be decoded.
Members = Mapping[str, SubscriptionInfo | None]


class FollowerSubscription(NamedTuple):
    """A member's subscription: its topics and its user data."""

    topics: Collection[str]
    user_data: bytes | None


def read_member(member_id: str, user_data: bytes | None) -> SubscriptionInfo | None:
    """Decode a member's user data; log a warning and return None if no follower wrote them."""
    try:
        return decode_subscription_info(user_data or b"")
    except CaughtupError as error:
        log.warning("member %s takes part as a new one: %s", member_id, error)
        return None


def process_of(member_id: str, info: SubscriptionInfo | None) -> ProcessId:
    """Return a member's process id; without user data, an id derived from its member id."""
    if info is not None:
        return info.process_id
    digest = hashlib.sha256(member_id.encode("utf-8", "surrogatepass")).digest()
    return ProcessId.of(int.from_bytes(digest[:16], "big"))


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """The group's tasks and clients at a rebalance, and the scenario made of them."""

    tasks: TaskPartitions
    clients: Mapping[ProcessId, ClientMetadata]
    scenario: Scenario

    def ready(self) -> dict[ProcessId, list[TaskId]]:
        """Return the copies that are caught up, by process."""
        states = ClientStates(self.scenario)
        return {
            process: [t for t in self.scenario.stateful if states.caught_up(process, t)]
            for process in states.clients
        }


def read_group(
    tasks: TaskPartitions,
    members: Members,
    ends: Mapping[TopicPartition, int],
    config: Mapping[str, object],
) -> GroupSnapshot:
    """Make a snapshot from the members' subscriptions.

    ``tasks``: the topology's present tasks. ``ends``: known end offsets of changelog partitions.
    ``config``: Kafka's assignment configs. Raises ScenarioError for a config that Kafka Streams
    would refuse.
    """
    clients = clients_of([_member(member_id, info) for member_id, info in sorted(members.items())])
    sums = _end_offset_sums(tasks, ends, clients)
    return GroupSnapshot(tasks, clients, parse_scenario(_scenario(tasks, clients, sums, config)))


def _member(member_id: str, info: SubscriptionInfo | None) -> MemberSubscription:
    """Return a member as a leader of Kafka Streams would read it.

    Members revoke all partitions before they join, so none owns any.
    """
    return MemberSubscription(
        member_id=member_id,
        process=process_of(member_id, info),
        offset_sums=info.offset_sums if info else {},
        tags=info.client_tags if info else {},
    )


def _end_offset_sums(
    tasks: TaskPartitions,
    ends: Mapping[TopicPartition, int],
    clients: Mapping[ProcessId, ClientMetadata],
) -> dict[TaskId, int]:
    """Return each task's end offset sum, at least the greatest offset sum of its copies.

    The end offsets were listed before the rebalance, so that copies may be beyond them.
    """
    sums: dict[TaskId, int] = {}
    for task, changelogs in tasks.changelogs.items():
        known = [ends[one] for one in changelogs if one in ends]
        if len(known) < len(changelogs):
            sums[task] = UNKNOWN_OFFSET_SUM
        else:
            reached = max(client.offset_sums.get(task, 0) for client in clients.values())
            sums[task] = max(sum_offsets(known), reached)
    return sums


def _scenario(
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, ClientMetadata],
    sums: Mapping[TaskId, int],
    config: Mapping[str, object],
) -> dict[str, object]:
    """Return the scenario in the format of ``caughtup assign``."""
    written: dict[str, object] = {}
    for process, client in clients.items():
        active, standby = client.previous_tasks({})
        written[str(process)] = {
            "capacity": client.capacity,
            "tags": dict(client.tags),
            "previous_active": [str(task) for task in sorted(active)],
            "previous_standby": [str(task) for task in sorted(standby)],
            "lags": {str(task): lag for task, lag in client.lags(sums).items()},
        }
    return {
        "name": None,
        "assignor": "minimal_movement",
        "config": dict(config),
        "tasks": {str(task): {"stateful": task in tasks.changelogs} for task in tasks.sources},
        "clients": written,
    }
