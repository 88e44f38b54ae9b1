"""Links about tasks: of a Streams application that restore or wait, of Connect that failed."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.connect_clusters.contradictions import Contradiction, ContradictionKind
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.durations import counted, duration
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.records.fields import or_absent
from caughtup.models.why.known import Known
from caughtup.models.why.links import Figure, Link, Name, and_others, verb

_LAG = "caughtup_task_lag_records"
#: Begins the name of a sink connector's consumer group, unless its configuration has another.
_SINK = "connect-"


def streams_links(known: Known) -> Iterator[Link]:
    """Yield the tasks that restore, and the warm-ups that wait for a probing rebalance."""
    state = known.state
    if known.group not in state.applications and known.group not in state.groups.streams:
        return
    rows = state.task_rows(known.group)
    restoring = [
        one for one in rows if one.role == "restoring" and (one.lag is None or one.lag > 0)
    ]
    if restoring:
        yield _restoring(known, restoring)
    watch = state.watches.get(known.group)
    probing = None if watch is None else watch.probing
    warmups = [one for one in rows if one.role == "warmup"]
    if not warmups or probing is None or not probing.needed:
        return
    due = "no rebalance is scheduled"
    if probing.due_ms is not None:
        left = (probing.due_ms - known.now_ms) / 1000
        due = f"the next probing rebalance is due in {duration(left)}"
        if left <= 0:
            due = f"the probing rebalance was due {duration(-left)} ago"
    ready = probing.worthwhile_now
    yield Link(
        kind="warmups_waiting",
        # A group that keeps up waits for no other instance.
        sure="likely" if ready and known.verdict.verdict != "ok" else "possible",
        text=f"{counted(len(warmups), 'warm-up')} "
        f"{'can' if ready else 'cannot yet'} take over a task, and {due}.",
        evidence=[
            Figure("warm-ups", len(warmups), "caughtup_task_copies"),
            Figure(
                "a probing rebalance is worthwhile now",
                int(ready),
                "caughtup_probing_rebalance_worthwhile",
            ),
        ],
        client=warmups[0].client_id,
    )


def _restoring(known: Known, restoring: list[TaskCopy]) -> Link:
    """Return the link of the tasks that restore their state, about the one with most to restore."""
    most = max(restoring, key=lambda one: (one.lag or 0, one.task))
    watch = known.state.watches.get(known.group)
    assessed = None if watch is None else watch.copies.get(CopyKey(most.process, most.task))
    verdict = "unknown" if assessed is None else assessed.verdict
    application = known.state.applications.get(known.group)
    partitions: list[TopicPartition] = []
    if application is not None:
        tasks, sources = {one.task for one in restoring}, application.newest.source_topics
        partitions = [
            one
            for one in known.lags
            if one.topic in sources and TaskId(sources[one.topic], one.partition) in tasks
        ]
    to_go = "an unknown number of offsets" if most.lag is None else counted(most.lag, "offset")
    evidence = [
        Figure("tasks that restore", len(restoring), "caughtup_task_copies"),
        Figure("verdict on the copy", verdict, "caughtup_task_status"),
    ]
    if most.lag is not None:
        evidence.append(Figure("offsets to restore", most.lag, _LAG))
    return Link(
        kind="restoring_tasks",
        sure="likely",
        text=f"Task {most.task} on {Name(most.client_id)}{and_others(restoring, 'other task')} "
        f"{verb(restoring, 'restores its', 'restore their')} state and "
        f"{verb(restoring, 'processes', 'process')} nothing until then: {to_go} to restore, "
        f"{verdict}.",
        evidence=evidence,
        lag=or_absent(known.sum_of(partitions) if partitions else None),
        client=most.client_id,
    )


def connect_links(known: Known) -> Iterator[Link]:
    """Yield the failed connectors and tasks of a worker cluster, or of a sink's group."""
    for group in sorted(known.state.connect.groups):
        own = group == known.group
        failed = [
            one
            for one in known.state.connect.contradictions(group, known.now_ms)
            if one.kind is ContradictionKind.FAILED and (own or _reads_for(known, group, one))
        ]
        if failed:
            yield _failed(known, failed)


def _reads_for(known: Known, group: str, one: Contradiction) -> bool:
    """Return whether the group is the consumer group of a connector."""
    connector = _connector(one)
    _, topics = known.state.connect.topics_of(group)
    config = None if topics is None else topics.configuration.configs.get(connector)
    if config is None:
        return known.group == f"{_SINK}{connector}"
    return config.is_sink and config.group == known.group


def _failed(known: Known, failed: list[Contradiction]) -> Link:
    first = failed[0]
    connector, task = _connector(first), None if isinstance(first.item, str) else first.item.task
    what = f"connector {Name(connector)}" if task is None else f"task {task} of {Name(connector)}"
    evidence = [Figure("failed", len(failed), "caughtup_connect_contradictions")]
    text = f"Connect's {what}{and_others(failed, 'other')} failed"
    if first.since_ms:
        ago = max(known.now_ms - first.since_ms, 0) / 1000
        evidence.append(Figure("seconds since then", round(ago, 1)))
        text += f" {duration(ago)} ago"
    on = f" on {Name(first.worker)}" if first.worker else ""
    return Link(
        kind="connect_task_failed",
        sure="certain",
        text=f"{text}{on}; Connect does not restart it by itself.",
        evidence=evidence,
        lag=known.lag,
        connector=connector,
        task=or_absent(task),
        host=or_absent(first.worker or None),
    )


def _connector(one: Contradiction) -> str:
    return one.item if isinstance(one.item, str) else one.item.connector
