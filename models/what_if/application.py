"""A Kafka Streams application as it is known, whoever assigns its tasks."""

from __future__ import annotations

from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.question import Group, group_of
from caughtup.models.what_if.streams_group import BrokerAssignedGroup, streams_group_of


def application_of_group(
    state: ClusterState, name: str, now_ms: int, restore: tuple[float, float] | None = None
) -> Group | BrokerAssignedGroup | None:
    """Return an application as it is known now; None if there is none of that name.

    ``restore``: the least and the greatest that a thread restores, in offsets a second, where
    somebody says so; else what copies were seen to.
    """
    return group_of(state, name, now_ms, restore) or streams_group_of(state, name, now_ms, restore)
