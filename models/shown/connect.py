"""Make the shown values of a Connect group, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from caughtup.models.connect.generation import worker_id
from caughtup.models.connect.watching.absences import Absence
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect.work import Item, written
from caughtup.models.connect_clusters.contradictions import Contradiction, configured_items
from caughtup.models.connect_clusters.table import ConnectGroup
from caughtup.models.connect_clusters.topic_sets import ClusterTopics, TopicSet
from caughtup.models.records.fields import Part, changed
from caughtup.models.shown.connect_lines import (
    AbsenceLine,
    ConnectGroupLine,
    ConnectorLine,
    ConnectView,
    ContradictionLine,
    ItemLine,
    Line,
    StormLine,
    UnassignedLine,
    WorkerLine,
)
from caughtup.models.shown.groups import group_line
from caughtup.models.state.cluster import ClusterState
from caughtup.models.transactions.holders import held_back
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: The number of a group's newest absences that are shown.
ABSENCES_SHOWN = 10

G = TypeVar("G", bound=ConnectGroupLine)


def connect_lines(state: ClusterState, group: str, now_ms: int) -> Iterator[Line]:
    """Yield a group's lines: workers, unassigned work, contradictions, connectors, the group."""
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    generation = watch.generation
    if known.empty_since_ms is None:
        for worker in worker_lines(watch):
            yield changed(
                worker,
                group=group,
                generation=generation.generation,
                protocol=generation.protocol,
            )
    for row in unassigned_lines(known, topics):
        yield changed(row, group=group)
    for one in state.connect.contradictions(group, now_ms):
        yield changed(contradiction_line(one), group=group)
    for connector in connector_lines(state, watch, topics):
        yield changed(connector, group=group)
    yield _group_line(ConnectGroupLine, state, group, known, watch, now_ms)


def connect_view(
    state: ClusterState, group: str, now_ms: int
) -> Generator[None, None, ConnectView | None]:
    """Return a group for the page, in steps; None before its first decision."""
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return None
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    view = _group_line(
        ConnectView,
        state,
        group,
        known,
        watch,
        now_ms,
        workers=worker_lines(watch) if known.empty_since_ms is None else [],
        unassigned=[],
        contradictions=[],
        connectors=[],
        items=[],
    )
    yield
    view.unassigned = unassigned_lines(known, topics)
    yield
    view.contradictions = [
        contradiction_line(one) for one in state.connect.contradictions(group, now_ms)
    ]
    yield
    view.connectors = connector_lines(state, watch, topics)
    yield
    view.items = item_lines(watch, topics)
    return view


def worker_lines(watch: Watch) -> list[WorkerLine]:
    """Return the workers, sorted by name."""
    generation = watch.generation
    rows = [
        WorkerLine(
            worker=worker_id(worker),
            member=member,
            client_id=worker.client_id,
            host=worker.host,
            url=worker.state.url,
            leader=member == generation.leader,
            connectors=written(ConnectorsAndTasks(watch.owned[member].connectors)),
            tasks=written(ConnectorsAndTasks((), watch.owned[member].tasks)),
            revoked=[] if worker.assignment is None else written(worker.assignment.revoked),
            delay_ms=0 if worker.assignment is None else worker.assignment.delay_ms,
            reassign_at_ms=generation.rejoin_at_ms,
        )
        for member, worker in generation.workers.items()
    ]
    return sorted(rows, key=lambda row: (row.worker, row.member))


def unassigned_lines(known: ConnectGroup, topics: ClusterTopics | None) -> list[UnassignedLine]:
    """Return the configured work that no worker has.

    Its ``since_ms`` is the time of the configuration if that is later than the newest generation.
    """
    watch = known.watch
    if watch is None:
        return []
    names = {name: worker_id(worker) for name, worker in watch.generation.workers.items()}
    configuration = None if topics is None else topics.configuration
    owned = owners(watch) if known.empty_since_ms is None else {}
    set_ms = {} if configuration is None else configuration.changed_ms
    rows = []
    for item in configured_items(watch, configuration):
        if item in owned:
            continue
        connector, task = _parts(item)
        goes_to = watch.forecast.goes_to.get(item)
        foreseen = goes_to is not None and known.empty_since_ms is None
        rows.append(
            UnassignedLine(
                name=str(item),
                connector=connector,
                task=task,
                since_ms=watch.since_ms.get(item, known.empty_since_ms or set_ms.get(connector)),
                goes_to=names[goes_to] if goes_to is not None and foreseen else None,
                at_ms=watch.forecast.at_ms if item in watch.since_ms and foreseen else None,
            )
        )
    return rows


def contradiction_line(one: Contradiction) -> ContradictionLine:
    """Return the line of a contradiction."""
    connector, task = _parts(one.item)
    return ContradictionLine(
        name=str(one.item),
        connector=connector,
        task=task,
        contradiction=str(one.kind),
        worker=one.worker or None,
        since_ms=one.since_ms or None,
        why=one.why,
        waits=one.waits,
    )


def connector_lines(
    state: ClusterState, watch: Watch, topics: ClusterTopics | None
) -> list[ConnectorLine]:
    """Return the connectors, sorted by name."""
    configuration = None if topics is None else topics.configuration
    connectors = watch.connectors if configuration is None else configuration.connectors
    rows = []
    for name in sorted(connectors):
        row = ConnectorLine(name=name, tasks=connectors[name])
        rows.append(row)
        config = None if configuration is None else configuration.configs.get(name)
        if topics is None or configuration is None or config is None:
            continue
        newest, fresh = topics.statuses.newest.get(name), topics.offsets.of(name)
        row.connector_class = config.connector_class or None
        row.type = "sink" if config.is_sink else "source"
        row.tasks_max = config.tasks_max
        row.target_state = configuration.targets.get(name, "STARTED")
        row.state = None if newest is None else newest.status.state
        if fresh is not None:
            row.offsets_at_ms, row.source_partitions = fresh.at_ms, fresh.partitions
        if config.is_sink:
            row.consumer_group = config.group
            _add_lag(state, row, config.group)
    return rows


def _add_lag(state: ClusterState, row: ConnectorLine, group: str) -> None:
    """Add the lag of a sink's consumer group, if known, to its connector's line."""
    if state.commits.changed(group) or state.groups.membership(group) is not None:
        line = group_line(state, group)
        row.lag, row.lag_seconds = line.lag, line.lag_seconds
        row.status, row.partitions = line.status, line.partitions


def item_lines(watch: Watch, topics: ClusterTopics | None) -> list[ItemLine]:
    """Return the connectors and tasks, with their workers and newest statuses."""
    owned = owners(watch)
    configuration = None if topics is None else topics.configuration
    rows = []
    for item in configured_items(watch, configuration):
        connector, task = _parts(item)
        row = ItemLine(name=str(item), connector=connector, task=task, workers=owned.get(item, []))
        newest = None if topics is None else topics.statuses.newest.get(item)
        if newest is not None:
            status = newest.status
            row.state, row.said_by = status.state, status.worker
            row.said_generation, row.said_ms = status.generation, newest.at_ms
            row.error = status.error or None
        rows.append(row)
    return rows


def owners(watch: Watch) -> dict[Item, list[str]]:
    """Return the workers of each connector and task; more than one if it runs twice."""
    found: dict[Item, list[str]] = {}
    for member, owns in watch.owned.items():
        worker = worker_id(watch.generation.workers[member])
        items: tuple[Item, ...] = (*owns.connectors, *owns.tasks)
        for item in items:
            found.setdefault(item, []).append(worker)
    return found


def _parts(item: Item) -> tuple[str, int | None]:
    """Return the connector, and the task's number; None for the connector itself."""
    return (item, None) if isinstance(item, str) else (item.connector, item.task)


def _group_line(
    kind: type[G],
    state: ClusterState,
    group: str,
    known: ConnectGroup,
    watch: Watch,
    now_ms: int,
    **lists: Sequence[Part],
) -> G:
    generation, decision = watch.generation, watch.comparison.decision
    names = {name: worker_id(worker) for name, worker in generation.workers.items()}
    found, _ = state.connect.topics_of(group)
    storm = watch.membership.storm(now_ms)
    return kind(
        group=group,
        generation=generation.generation,
        protocol=generation.protocol,
        as_of_ms=generation.as_of_ms if generation.as_of_ms >= 0 else None,
        result=watch.comparison.result,
        why=watch.comparison.why or None,
        empty_since_ms=known.empty_since_ms,
        delay_ms=generation.delay_ms,
        delayed=str(decision.delayed) if decision and decision.delayed is not None else None,
        next_rebalance_ms=watch.forecast.at_ms,
        next_revokes={names[m]: written(work) for m, work in watch.forecast.revokes.items()},
        imbalance=watch.imbalance,
        imbalance_after=watch.forecast.after,
        uneven_since_ms=watch.uneven_since_ms,
        storm=None if storm is None else StormLine(*storm, storm.why),
        absences=[
            _absence_line(absence, now_ms)
            for absence in reversed(watch.membership.absences[-ABSENCES_SHOWN:])
        ],
        topics=None if found.topics is None else found.topics._asdict(),
        topics_unknown=found.why or None,
        held_back=_held_back(state, found.topics) or None,
        shared_with=state.connect.sharing(group) or None,
        history=list(reversed(watch.history)),
        **lists,
    )


def _held_back(state: ClusterState, topics: TopicSet | None) -> list[str]:
    names = () if topics is None else topics.topics
    return [
        held_back(partition, holder)
        for partition, holder in sorted(state.transactions.holders.items())
        if partition.topic in names
    ]


def _absence_line(absence: Absence, now_ms: int) -> AbsenceLine:
    return AbsenceLine(*absence, str(absence.outcome(now_ms)))
