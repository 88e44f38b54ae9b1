"""The shown value of a Streams application whose tasks the group coordinator assigns (KIP-1071)."""

from __future__ import annotations

from collections.abc import Generator

from caughtup.models.groups.streams import StreamsGroup
from caughtup.models.ids import natural_order
from caughtup.models.records.config_lines import ConfigLine
from caughtup.models.records.fields import ABSENT, changed
from caughtup.models.records.recommendations import KnownConfigRecord
from caughtup.models.shown.applications import (
    ApplicationView,
    ClientLine,
    ProbingLine,
    TaskLine,
    rates_line,
)
from caughtup.models.shown.lag import copy_line
from caughtup.models.state.cluster import ClusterState

_ACCEPTABLE = "acceptable.recovery.lag"
_KNOWN = "by the coordinator"


def streams_group_view(
    state: ClusterState, name: str, group: StreamsGroup, now_ms: int
) -> Generator[None, None, ApplicationView]:
    """Return the application as its members' current assignments have it.

    The coordinator decides, not a leader: there is no decision to compare, no recommendation, and no
    probing rebalance. The caller may do other work between two steps.
    """
    watch = state.watches.get(name)
    tasks: dict[str, TaskLine] = {}
    stateful = {number for number, topics in group.changelogs().items() if topics}
    for copy in state.task_rows(name):
        line = copy_line(name, copy, watch)
        known = tasks.setdefault(
            line.task, TaskLine(line.task, copy.task.subtopology in stateful, [])
        )
        known.copies.append(line)
        yield
    target = group.target_of
    return ApplicationView(
        group=name,
        generation=group.epoch or 0,
        as_of_ms=0 if target is None else target.assignment_timestamp_ms,
        acceptable_recovery_lag=state.applications.config(name, _ACCEPTABLE),
        configs=_configs(group),
        clients=_clients(group),
        tasks=[tasks[task] for task in sorted(tasks, key=natural_order)],
        probing=ProbingLine(scheduled=False),
        set_aside=state.set_aside.of(name),
        rates=rates_line(state, watch, now_ms),
        history=[],
        by_coordinator=True,
    )


def _configs(group: StreamsGroup) -> list[ConfigLine]:
    """Return the configs by which the coordinator assigned last."""
    known = [
        KnownConfigRecord(config, value, value, "read")
        for config, value in sorted(group.configs.items())
    ]
    lines = [ConfigLine.of(one, "") for one in known]
    return [changed(line, known=_KNOWN, group=ABSENT) for line in lines]


def _clients(group: StreamsGroup) -> list[ClientLine]:
    """Return the processes; each of their members is a stream thread."""
    clients: dict[str, ClientLine] = {}
    for _, member in sorted(group.members.items()):
        line = clients.setdefault(
            member.process_id,
            ClientLine(member.process_id, member.client_id, [], member.client_host, 0, False),
        )
        line.client_ids.append(member.client_id)
        line.capacity += 1
    return sorted(clients.values(), key=lambda line: (natural_order(line.name), line.process))
