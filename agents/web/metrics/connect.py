"""Metrics of Connect groups: generations, unassigned work, contradictions, storms, connectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Literal

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.connect.generation import worker_id
from caughtup.models.connect.watching.comparison import RESULTS
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect_clusters.contradictions import ContradictionKind, configured_items
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.shown.connect import connector_lines, owners
from caughtup.models.shown.connect_lines import ConnectorLine

_GROUP = ("cluster", "group")
_CONNECTOR = (*_GROUP, "connector")
#: The most contradictions of a group with a series each; the others are only counted.
_NAMED = 200


def _groups(scrape: Scrape) -> list[str]:
    groups = scrape.state.connect.groups
    return sorted(group for group, known in groups.items() if known.watch is not None)


def _watch(scrape: Scrape, group: str) -> Watch | None:
    known = scrape.state.connect.groups.get(group)
    return None if known is None else known.watch


def _figure(
    figure: Callable[[Watch, Scrape], float | None],
    family: Family,
    scrape: Scrape,
    group: str,
) -> Iterator[bytes]:
    watch = _watch(scrape, group)
    value = None if watch is None else figure(watch, scrape)
    if value is not None:
        yield family.line((scrape.state.cluster, group), value)


def _generation(watch: Watch, _: Scrape) -> float:
    return watch.generation.generation


def _workers(watch: Watch, scrape: Scrape) -> float:
    known = scrape.state.connect.groups[watch.generation.group]
    return 0 if known.empty_since_ms is not None else len(watch.generation.workers)


def _unassigned(watch: Watch, scrape: Scrape) -> float:
    group = watch.generation.group
    known = scrape.state.connect.groups[group]
    _, topics = scrape.state.connect.topics_of(group)
    configured = configured_items(watch, None if topics is None else topics.configuration)
    owned = owners(watch) if known.empty_since_ms is None else {}
    return sum(item not in owned for item in configured)


def _next_rebalance(watch: Watch, _: Scrape) -> float | None:
    ends_ms = watch.generation.rejoin_at_ms
    return None if ends_ms is None else ends_ms / 1000


def _uneven(watch: Watch, scrape: Scrape) -> float:
    since_ms = watch.uneven_since_ms
    return 0 if since_ms is None else max(0, scrape.now_ms - since_ms) / 1000


def _results(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    watch = _watch(scrape, group)
    if watch is None:
        return
    for result in RESULTS:
        yield family.line((scrape.state.cluster, group, result), watch.counts.get(result, 0))


def _assigned(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    watch = _watch(scrape, group)
    if watch is None:
        return
    workers: Counter[tuple[str, str]] = Counter()
    for member, owns in watch.owned.items():
        worker = worker_id(watch.generation.workers[member])
        workers[worker, "connector"] += len(owns.connectors)
        workers[worker, "task"] += len(owns.tasks)
    for (worker, kind), count in sorted(workers.items()):
        yield family.line((scrape.state.cluster, group, worker, kind), count)


def _contradictions(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    counts = Counter(
        one.kind
        for one in scrape.state.connect.contradictions(group, scrape.now_ms)
        if not one.waits
    )
    for kind in ContradictionKind:
        yield family.line((scrape.state.cluster, group, kind), counts[kind])


def _contradiction(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    found = scrape.state.connect.contradictions(group, scrape.now_ms)
    for one in islice((one for one in found if not one.waits), _NAMED):
        connector, task = (
            (one.item.connector, str(one.item.task))
            if isinstance(one.item, ConnectorTaskId)
            else (one.item, "")
        )
        labels = scrape.state.cluster, group, one.kind, connector, task, one.worker
        yield family.line(labels, 1)


def _ceased(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.state.connect.ceased)


def _storm(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    watch = _watch(scrape, group)
    storm = None if watch is None else watch.membership.storm(scrape.now_ms)
    if storm is not None:
        labels = scrape.state.cluster, group, storm.cause, storm.culprit
        yield family.line(labels, storm.generations)


def _connectors(
    figure: Callable[[ConnectorLine, Scrape], float | None],
    family: Family,
    scrape: Scrape,
    group: str,
) -> Iterator[bytes]:
    watch = _watch(scrape, group)
    if watch is None:
        return
    _, topics = scrape.state.connect.topics_of(group)
    for row in connector_lines(scrape.state, watch, topics):
        value = figure(row, scrape)
        if value is not None:
            yield family.line((scrape.state.cluster, group, row.name), value)


def _offsets_age(row: ConnectorLine, scrape: Scrape) -> float | None:
    at_ms = row.offsets_at_ms
    return None if at_ms is None else max(0, scrape.now_ms - at_ms) / 1000


def _of_groups(
    name: str,
    documentation: str,
    labels: tuple[str, ...],
    lines: Callable[[Family, Scrape, str], Iterator[bytes]],
    *,
    counter: bool = False,
) -> Family:
    kind: Literal["gauge", "counter"] = "counter" if counter else "gauge"
    return Family(name, documentation, labels, lines, _groups, kind)


CONNECT_FAMILIES = (
    Family(
        "caughtup_connect_groups_ceased_total",
        "Groups of Connect whose name another kind of group now has",
        ("cluster",),
        _ceased,
        type="counter",
    ),
    _of_groups(
        "caughtup_connect_generation",
        "Newest generation of a Connect group that was recomputed",
        _GROUP,
        partial(_figure, _generation),
    ),
    _of_groups(
        "caughtup_connect_workers",
        "Workers of a Connect group",
        _GROUP,
        partial(_figure, _workers),
    ),
    _of_groups(
        "caughtup_connect_decisions_total",
        "Generations of a Connect group recomputed, by result",
        (*_GROUP, "result"),
        _results,
        counter=True,
    ),
    _of_groups(
        "caughtup_connect_assigned",
        "Connectors and tasks that a worker is assigned",
        (*_GROUP, "worker", "kind"),
        _assigned,
    ),
    _of_groups(
        "caughtup_connect_unassigned",
        "Connectors and tasks that are configured and that no worker is assigned",
        _GROUP,
        partial(_figure, _unassigned),
    ),
    _of_groups(
        "caughtup_connect_delay_ends_timestamp_seconds",
        "When the delay of a Connect group ends, after which unassigned work is assigned",
        _GROUP,
        partial(_figure, _next_rebalance),
    ),
    _of_groups(
        "caughtup_connect_contradictions",
        "Connectors and tasks whose status contradicts their assignment",
        (*_GROUP, "kind"),
        _contradictions,
    ),
    _of_groups(
        "caughtup_connect_contradiction",
        "1 for each contradiction, at most 200 a group",
        (*_GROUP, "kind", "connector", "task", "worker"),
        _contradiction,
    ),
    _of_groups(
        "caughtup_connect_storm_generations",
        "Generations within ten minutes of a Connect group that rebalances again and again",
        (*_GROUP, "cause", "culprit"),
        _storm,
    ),
    _of_groups(
        "caughtup_connect_uneven_seconds",
        "Seconds for which a stable Connect group has had work assigned unevenly",
        _GROUP,
        partial(_figure, _uneven),
    ),
    _of_groups(
        "caughtup_connect_connector_tasks",
        "Tasks that a connector is configured with",
        _CONNECTOR,
        partial(_connectors, lambda row, _: row.tasks),
    ),
    _of_groups(
        "caughtup_connect_connector_lag_records",
        "Records that a sink connector's consumer group has yet to read",
        _CONNECTOR,
        partial(_connectors, lambda row, _: row.lag),
    ),
    _of_groups(
        "caughtup_connect_source_offset_age_seconds",
        "Time since a source connector last stored an offset",
        _CONNECTOR,
        partial(_connectors, _offsets_age),
    ),
)
