"""The series of tasks' copies, written as they are sent: a large group has thousands of copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isinf

from caughtup.agents.clock import now_ms
from caughtup.agents.web.metrics.group_labels import escaped
from caughtup.agents.web.metrics.partition_series import PART, of_each
from caughtup.models.copies.warmups import VERDICTS, CopyAssessment
from caughtup.models.state.cluster import ClusterState

_LAG = "caughtup_task_lag_records"
_COPIES = "caughtup_task_copies"
_STATUS = "caughtup_task_status"
_ETA = "caughtup_task_catchup_eta_seconds"
_COPY = ("cluster", "group", "process", "client_id", "task", "role")
#: The labels of each of these metrics, by its name.
LABELS = {
    _LAG: _COPY,
    _COPIES: ("cluster", "group", "role"),
    _STATUS: (*_COPY, "status"),
    _ETA: _COPY,
}


def task_series(state: ClusterState) -> Iterator[bytes]:
    """Give the text of all series of tasks, in pieces of a few milliseconds' work at most.

    The state may change between two pieces.
    """
    cluster = f'cluster="{escaped(state.cluster)}"'
    for name, series in ((_LAG, _lags), (_COPIES, _counts), (_STATUS, _statuses), (_ETA, _etas)):
        with state.faults.isolated(PART, name, now_ms()):
            yield from map(str.encode, series(state, cluster))


def _lags(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_LAG, "Offsets a copy of a task has yet to restore, as last reported")

    def lines(group: str) -> Iterator[str]:
        before = f'{_LAG}{{{cluster},group="{escaped(group)}",process="'
        for copy in state.task_rows(group):
            if copy.lag is not None:
                yield (
                    f'{before}{escaped(copy.process)}",client_id="{escaped(copy.client_id)}",'
                    f'task="{copy.task}",role="{copy.role}"}} {copy.lag}\n'
                )

    yield from of_each(state, _applications(state), lines)


def _counts(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_COPIES, "Copies of tasks, by role")

    def lines(group: str) -> Iterator[str]:
        roles = Counter(copy.role for copy in state.task_rows(group))
        before = f'{_COPIES}{{{cluster},group="{escaped(group)}",role="'
        yield "".join(f'{before}{role}"}} {count}\n' for role, count in sorted(roles.items()))

    yield from of_each(state, _applications(state), lines)


def _statuses(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_STATUS, "How a copy that is to catch up fares")

    def lines(group: str) -> Iterator[str]:
        for labels, assessed in _assessed(state, cluster, group):
            before = f'{_STATUS}{{{labels},status="'
            yield "".join(f'{before}{one}"}} {int(one == assessed.verdict)}\n' for one in VERDICTS)

    yield from of_each(state, sorted(state.watches), lines)


def _etas(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_ETA, "Time until a copy is caught up")

    def lines(group: str) -> Iterator[str]:
        for labels, assessed in _assessed(state, cluster, group):
            if (eta := assessed.figures.eta) is not None:
                yield f"{_ETA}{{{labels}}} {'+Inf' if isinf(eta.seconds) else eta.seconds}\n"

    yield from of_each(state, sorted(state.watches), lines)


def _assessed(
    state: ClusterState, cluster: str, group: str
) -> Iterator[tuple[str, CopyAssessment]]:
    """Give a group's copies as last worked out, each with the labels of its series."""
    watch = state.watches.get(group)
    if watch is None:
        return
    before = f'{cluster},group="{escaped(group)}",process="'
    clients, copies = watch.client_ids, watch.copies
    for key, assessed in sorted(copies.items()):
        labels = (
            f'{before}{escaped(key.process)}",client_id="{escaped(clients[key.process])}",'
            f'task="{key.task}",role="{assessed.role}"'
        )
        yield labels, assessed


def _applications(state: ClusterState) -> list[str]:
    return sorted(state.applications.keys() | state.groups.streams.keys())


def _head(name: str, documentation: str) -> str:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n"
