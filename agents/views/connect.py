"""A Connect group for people: who runs what, what nobody has, and what contradicts what."""

from __future__ import annotations

from typing import Any

from caughtup.agents.views.copies import present
from caughtup.agents.views.groups import group_summary
from caughtup.models.connect.names import written
from caughtup.models.connect.watching.forecast import Imbalance
from caughtup.models.connect.watching.told import worker_id
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect.work import Item
from caughtup.models.connect_clusters.contradictions import Contradiction, configured_items
from caughtup.models.connect_clusters.matching import ClusterTopics
from caughtup.models.connect_clusters.table import ConnectGroup
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

Row = dict[str, Any]

#: Absences that are shown of a group, the newest.
ABSENCES_SHOWN = 10


def names_of(watch: Watch) -> dict[str, str]:
    """Return the worker of each member: host and port of its URL, as Connect names it."""
    return {name: worker_id(worker) for name, worker in watch.generation.workers.items()}


def item_fields(item: Item) -> Row:
    """Name a connector or a task: by itself, and by the connector and the task's number."""
    if isinstance(item, str):
        return {"name": item, "connector": item}
    return {"name": str(item), "connector": item.connector, "task": item.task}


def worker_rows(watch: Watch) -> list[Row]:
    """List the workers by name: what each has when it has done as it was told."""
    rows = []
    generation = watch.generation
    for member, worker in generation.workers.items():
        owns, told = watch.owned[member], worker.told
        rows.append(
            present(
                worker=worker_id(worker),
                member=member,
                client_id=worker.client_id,
                host=worker.host,
                url=worker.said.url,
                leader=member == generation.leader,
                connectors=written(ConnectorsAndTasks(owns.connectors)),
                tasks=written(ConnectorsAndTasks((), owns.tasks)),
                revoked=[] if told is None else written(told.revoked),
                delay_ms=0 if told is None else told.delay_ms,
                reassign_at_ms=generation.rejoin_at_ms,
            )
        )
    return sorted(rows, key=lambda row: (row["worker"], row["member"]))


def unassigned_rows(known: ConnectGroup, topics: ClusterTopics | None) -> list[Row]:
    """List what is configured and nobody has: since when, and where known, who gets it when.

    What came into the configuration after the newest generation is there since then.
    """
    watch = known.watch
    if watch is None:
        return []
    names, configuration = names_of(watch), None if topics is None else topics.configuration
    owned = owners(watch) if known.empty_since_ms is None else {}
    changed = {} if configuration is None else configuration.changed_ms
    rows = []
    for item in configured_items(watch, configuration):
        if item in owned:
            continue
        connector = item if isinstance(item, str) else item.connector
        since_ms = watch.since_ms.get(item, known.empty_since_ms or changed.get(connector))
        goes_to = watch.forecast.goes_to.get(item)
        foreseen = goes_to is not None and known.empty_since_ms is None
        rows.append(
            item_fields(item)
            | present(
                since_ms=since_ms,
                goes_to=names[goes_to] if goes_to is not None and foreseen else None,
                at_ms=watch.forecast.at_ms if item in watch.since_ms and foreseen else None,
            )
        )
    return rows


def owners(watch: Watch) -> dict[Item, list[str]]:
    """Return the workers of each connector and task: several where they ran it twice."""
    found: dict[Item, list[str]] = {}
    for member, owns in watch.owned.items():
        worker = worker_id(watch.generation.workers[member])
        items: tuple[Item, ...] = (*owns.connectors, *owns.tasks)
        for item in items:
            found.setdefault(item, []).append(worker)
    return found


def contradiction_row(one: Contradiction) -> Row:
    """Describe a contradiction."""
    return item_fields(one.item) | present(
        contradiction=str(one.kind),
        worker=one.worker or None,
        since_ms=one.since_ms or None,
        why=one.why,
        waits=one.waits,
    )


def group_row(state: ClusterState, group: str, known: ConnectGroup, now_ms: int) -> Row:
    """Describe a group as a whole: its newest generation decided again, and what comes next."""
    watch = known.watch
    if watch is None:
        return {}
    generation, names = watch.generation, names_of(watch)
    found, _ = state.connect.topics_of(group)
    storm = watch.comings.storm(now_ms)
    return present(
        generation=generation.generation,
        protocol=generation.protocol,
        as_of_ms=generation.as_of_ms if generation.as_of_ms >= 0 else None,
        result=watch.again.result,
        why=watch.again.why or None,
        empty_since_ms=known.empty_since_ms,
        delay_ms=generation.delay_ms,
        delayed=_delayed(watch),
        next_rebalance_ms=watch.forecast.at_ms,
        next_revokes={names[m]: written(work) for m, work in watch.forecast.revokes.items()},
        imbalance=_imbalance(watch.imbalance),
        imbalance_after=_imbalance(watch.forecast.after),
        uneven_since_ms=watch.uneven_since_ms,
        storm=None if storm is None else {**storm._asdict(), "why": storm.why},
        absences=[
            present(**absence._asdict(), outcome=str(absence.outcome(now_ms)))
            for absence in reversed(watch.comings.absences[-ABSENCES_SHOWN:])
        ],
        topics=None if found.topics is None else found.topics._asdict(),
        topics_unknown=found.why or None,
        shared_with=state.connect.sharing(group) or None,
        history=[one._asdict() for one in reversed(watch.history)],
    )


def _delayed(watch: Watch) -> str | None:
    decision = watch.again.decision
    return None if decision is None or decision.delayed is None else str(decision.delayed)


def _imbalance(uneven: Imbalance | None) -> dict[str, int] | None:
    return None if uneven is None else uneven._asdict()


def connector_rows(state: ClusterState, watch: Watch, topics: ClusterTopics | None) -> list[Row]:
    """List the connectors by name: what is configured of each, what runs, how far behind it is."""
    configuration = None if topics is None else topics.configuration
    connectors = watch.connectors if configuration is None else configuration.connectors
    rows = []
    for name in sorted(connectors):
        row: Row = {"name": name, "tasks": connectors[name]}
        config = None if configuration is None else configuration.configs.get(name)
        if topics is None or configuration is None or config is None:
            rows.append(row)
            continue
        said = topics.statuses.newest.get(name)
        fresh = topics.offsets.of(name)
        row |= present(
            connector_class=config.connector_class or None,
            type="sink" if config.is_sink else "source",
            tasks_max=config.tasks_max,
            target_state=configuration.targets.get(name, "STARTED"),
            state=None if said is None else said.status.state,
            offsets_at_ms=None if fresh is None else fresh.at_ms,
            source_partitions=None if fresh is None else fresh.partitions,
        )
        if config.is_sink:
            row |= {"consumer_group": config.group} | _lag_of(state, config.group)
        rows.append(row)
    return rows


def _lag_of(state: ClusterState, group: str) -> Row:
    """Return the lag of a sink's consumer group, as far as it is known."""
    if not state.commits.changed(group) and state.groups.membership(group) is None:
        return {}
    summary = group_summary(state, group)
    return {
        name: summary[name]
        for name in ("lag", "lag_seconds", "status", "partitions")
        if name in summary
    }


def item_rows(watch: Watch, topics: ClusterTopics | None) -> list[Row]:
    """List connectors and tasks with their workers, and what was last said of each."""
    owned = owners(watch)
    configuration = None if topics is None else topics.configuration
    rows = []
    for item in configured_items(watch, configuration):
        said = None if topics is None else topics.statuses.newest.get(item)
        status = None if said is None else said.status
        rows.append(
            item_fields(item)
            | present(
                workers=owned.get(item, []),
                state=None if status is None else status.state,
                said_by=None if status is None else status.worker,
                said_generation=None if status is None else status.generation,
                said_ms=None if said is None else said.at_ms,
                error=(status.error or None) if status is not None else None,
            )
        )
    return rows
