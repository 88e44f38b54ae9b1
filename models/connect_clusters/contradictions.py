"""Where what workers say contradicts what their group was told, and what nobody runs for too long."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.connect.generation import worker_id
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect.work import NO_WORK, Configured, Item
from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.statuses import Said, Statuses

#: So long (ms) a connector or task may take to start, and to say so.
STARTING_MS = 30_000
#: So long (ms) after a delay the next round may take.
_ROUND_MS = 5_000
#: So far (ms) a worker's clock may be ahead of ours; what it dates later than that has no time.
_CLOCK_MS = 10_000


class Kind(StrEnum):
    """What contradicts what, the worst first.

    ``failed``: it says that it failed. ``zombie``: it is said to run on a worker that doesn't have
    it, and has left or was overtaken by another. ``unassigned``: nobody has it, though its delay is
    over. ``not_running``: a worker has it and doesn't say that it runs. ``fewer_tasks``: a
    connector has no tasks, or not all that its configuration counts.
    """

    FAILED = "failed"
    ZOMBIE = "zombie"
    UNASSIGNED = "unassigned"
    NOT_RUNNING = "not_running"
    FEWER_TASKS = "fewer_tasks"


class Contradiction(NamedTuple):
    """A connector or task of which two sources say different things, since when (ms), and what.

    ``worker`` is where it is said to be, "" for nowhere. ``waits``: it may be over as soon as its
    worker is back, as its work waits for it.
    """

    kind: Kind
    item: Item
    worker: str
    since_ms: int
    why: str
    waits: bool = False


def contradictions(
    watch: Watch, configuration: Configuration | None, statuses: Statuses | None, now_ms: int
) -> list[Contradiction]:
    """List them as of now (ms): the worst kind first, then connectors, then tasks, by name.

    Without a worker cluster's topics only what nobody runs can be told.
    """
    found = list(_contradictions(watch, configuration, statuses, now_ms))
    kinds = list(Kind)
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
    """List what is to be run as of now: connectors, then tasks, by name."""
    connectors = watch.connectors if configuration is None else configuration.connectors
    all_of_it = Configured(connectors).missing(NO_WORK, NO_WORK)
    return [*all_of_it.connectors, *all_of_it.tasks]


def _overdue(watch: Watch, item: Item, now_ms: int) -> Contradiction | None:
    """Return that nobody has something for too long, None if it may still be given to somebody."""
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
    return Contradiction(Kind.UNASSIGNED, item, "", since_ms, why) if late else None


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
        yield Contradiction(Kind.FAILED, item, owner, said.at_ms, why)
    elif late is not None and status.worker != owner:
        why = (
            f"{status.worker} reported {status.state} in generation {status.generation}, "
            "after another worker reported in a later one"
        )
        yield Contradiction(Kind.ZOMBIE, item, status.worker, said.at_ms, why)
    elif status.worker != owner and status.worker not in here and status.state == "RUNNING":
        yield _zombie(watch, item, owner, said, now_ms)
    elif owner and (status.worker != owner or status.state == "UNASSIGNED"):
        # A status may be of a generation that is not read yet: then it is a moment old.
        said_ms = said.at_ms if said.at_ms <= now_ms + _CLOCK_MS else 0
        why = f"last reported {status.state} on {status.worker}"
        yield from _idle(watch, item, owner, said_ms, why, now_ms)


def _zombie(watch: Watch, item: Item, owner: str, said: Said, now_ms: int) -> Contradiction:
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
    return Contradiction(Kind.ZOMBIE, item, status.worker, since_ms, why, waits or starting)


def _idle(
    watch: Watch, item: Item, owner: str, said_ms: int, why: str, now_ms: int
) -> Iterator[Contradiction]:
    """Yield that its owner does not run it, once it had time to since it was assigned and since ``said_ms``."""
    since_ms = max(watch.given_ms.get(item, 0), said_ms)
    if now_ms - since_ms > STARTING_MS:
        yield Contradiction(Kind.NOT_RUNNING, item, owner, since_ms, why)


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
        yield Contradiction(Kind.FEWER_TASKS, name, "", since_ms, why)
