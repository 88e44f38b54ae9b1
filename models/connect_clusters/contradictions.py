"""Contradictions between statuses, assignments and configuration, and work left unassigned."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.connect.generation import worker_id
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect.work import NO_WORK, Configured, Item
from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.statuses import DatedStatus, Statuses

#: How long a connector or task may take to start and to report RUNNING, in ms.
STARTING_MS = 30_000
#: How long the next round may take after a delay, in ms.
_ROUND_MS = 5_000
#: How far a worker's clock may be ahead, in ms; a status dated later counts as undated.
_CLOCK_MS = 10_000


class ContradictionKind(StrEnum):
    """The kinds of contradiction, the worst first.

    ``failed``: its status is FAILED. ``zombie``: its status is RUNNING on a worker that is not
    assigned it, and that left or was superseded by another. ``unassigned``: no worker is assigned
    it, though its delay is over. ``not_running``: a worker is assigned it and has not reported
    RUNNING. ``fewer_tasks``: a connector has no tasks, or fewer than configured.
    """

    FAILED = "failed"
    ZOMBIE = "zombie"
    UNASSIGNED = "unassigned"
    NOT_RUNNING = "not_running"
    FEWER_TASKS = "fewer_tasks"


class Contradiction(NamedTuple):
    """A connector or task on which two sources disagree, since when (ms), and why.

    ``worker`` is the worker of its status or assignment, "" for none. ``waits`` is whether it may
    end when its worker comes back, for which the work waits.
    """

    kind: ContradictionKind
    item: Item
    worker: str
    since_ms: int
    why: str
    waits: bool = False


def contradictions(
    watch: Watch, configuration: Configuration | None, statuses: Statuses | None, now_ms: int
) -> list[Contradiction]:
    """Return the contradictions at ``now_ms``: by kind, then connectors, then tasks, by name.

    Without a worker cluster's topics only unassigned work is found.
    """
    found = list(_contradictions(watch, configuration, statuses, now_ms))
    kinds = list(ContradictionKind)
    return sorted(
        found,
        key=lambda one: (kinds.index(one.kind), not isinstance(one.item, str), one.item),
    )


def _contradictions(
    watch: Watch, configuration: Configuration | None, statuses: Statuses | None, now_ms: int
) -> Iterator[Contradiction]:
    workers = watch.generation.workers
    here = {worker_id(worker) for worker in workers.values()}
    owners: dict[Item, str] = {}
    for member, owned in watch.owned.items():
        items: tuple[Item, ...] = (*owned.connectors, *owned.tasks)
        owners.update(dict.fromkeys(items, worker_id(workers[member])))
    for item in configured_items(watch, configuration):
        owner = owners.get(item, "")
        if not owner and (overdue := _overdue(watch, item, now_ms)):
            yield overdue
        if statuses is not None:
            yield from _of_status(watch, item, owner, here, statuses, now_ms)
    if configuration is not None:
        yield from _without_tasks(configuration, now_ms)


def configured_items(watch: Watch, configuration: Configuration | None) -> list[Item]:
    """Return all that is configured now: connectors, then tasks, by name."""
    connectors = watch.connectors if configuration is None else configuration.connectors
    all_of_it = Configured(connectors).missing(NO_WORK, NO_WORK)
    return [*all_of_it.connectors, *all_of_it.tasks]


def _overdue(watch: Watch, item: Item, now_ms: int) -> Contradiction | None:
    """Return the contradiction of an item that is unassigned for too long, else None."""
    since_ms = watch.since_ms.get(item)
    if since_ms is None:
        return None  # it is new, and its round is yet to come
    due_ms = watch.forecast.at_ms
    if due_ms is None or not watch.generation.delay_ms:
        late = now_ms - max(since_ms, due_ms or 0) > STARTING_MS
        why = "no worker is assigned it, and no delay runs"
    else:
        late = now_ms - due_ms > _ROUND_MS
        why = "no worker is assigned it, though its delay is over"
    return Contradiction(ContradictionKind.UNASSIGNED, item, "", since_ms, why) if late else None


def _of_status(
    watch: Watch, item: Item, owner: str, here: set[str], statuses: Statuses, now_ms: int
) -> Iterator[Contradiction]:
    said = statuses.newest.get(item)
    late = statuses.late.get(item)
    if said is None:
        if owner:
            yield from _idle(watch, item, owner, 0, "has never reported RUNNING", now_ms)
        return
    status = said.status
    if status.state == "FAILED" and status.worker in ("", owner):
        why = f"failed: {status.error}" if status.error else "failed"
        yield Contradiction(ContradictionKind.FAILED, item, owner, said.at_ms, why)
    elif late is not None and status.worker != owner:
        why = (
            f"{status.worker} reported {status.state} in generation {status.generation}, "
            "after another worker reported in a later one"
        )
        yield Contradiction(ContradictionKind.ZOMBIE, item, status.worker, said.at_ms, why)
    elif status.worker != owner and status.worker not in here and status.state == "RUNNING":
        yield _zombie(watch, item, owner, said, now_ms)
    elif owner and (status.worker != owner or status.state == "UNASSIGNED"):
        # A status may be of a generation that is not read yet; then it is recent.
        said_ms = said.at_ms if said.at_ms <= now_ms + _CLOCK_MS else 0
        why = f"last reported {status.state} on {status.worker}"
        yield from _idle(watch, item, owner, said_ms, why, now_ms)


def _zombie(watch: Watch, item: Item, owner: str, said: DatedStatus, now_ms: int) -> Contradiction:
    status = said.status
    ends_ms = watch.generation.rejoin_at_ms
    waits = not owner and ends_ms is not None and now_ms <= ends_ms + _ROUND_MS
    starting = bool(owner) and not _had_time(watch, item, now_ms)
    now = f"{owner} is assigned it" if owner else "no worker is assigned it"
    why = (
        f"{status.worker} reported RUNNING in generation {status.generation} and has left the "
        f"group; {now}"
    )
    at_ms = max(watch.generation.as_of_ms, said.at_ms, 0)
    since_ms = min(watch.since_ms.get(item, at_ms), at_ms)
    return Contradiction(
        ContradictionKind.ZOMBIE, item, status.worker, since_ms, why, waits or starting
    )


def _idle(
    watch: Watch, item: Item, owner: str, said_ms: int, why: str, now_ms: int
) -> Iterator[Contradiction]:
    """Yield the contradiction of an owner that had time to start an item and does not run it.

    The time counts from the assignment and from ``said_ms``, whichever is later.
    """
    since_ms = max(watch.given_ms.get(item, 0), said_ms)
    if now_ms - since_ms > STARTING_MS:
        yield Contradiction(ContradictionKind.NOT_RUNNING, item, owner, since_ms, why)


def _had_time(watch: Watch, item: Item, now_ms: int) -> bool:
    return now_ms - watch.given_ms.get(item, 0) > STARTING_MS


def _without_tasks(configuration: Configuration, now_ms: int) -> Iterator[Contradiction]:
    for name, tasks in configuration.connectors.items():
        since_ms = configuration.changed_ms.get(name, 0)
        if tasks or configuration.targets.get(name, "STARTED") == "STOPPED":
            continue
        if now_ms - since_ms <= STARTING_MS:
            continue
        most = configuration.configs[name].tasks_max
        why = (
            "the config topic lacks configurations of its tasks"
            if name in configuration.inconsistent
            else f"has no tasks; tasks.max is {most or 'not known'}"
        )
        yield Contradiction(ContradictionKind.FEWER_TASKS, name, "", since_ms, why)
