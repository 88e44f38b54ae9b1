"""The movements of connectors and tasks between workers: planned, promoted or dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from caughtup.models.connect.generation import worker_id
from caughtup.models.connect.watching.watch import Watch
from caughtup.models.connect.work import Item
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.records.fields import ABSENT, or_absent
from caughtup.models.records.movements import CONNECT, ConnectMovementRecord, Step
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: The reason in a record for each value of ``Assigned``.
_REASONS = {
    "new": "it is new",
    "not_received": "the worker to which it was assigned did not receive that assignment",
    "no_delay": "its worker left the group, and there is no delay",
    "delay_over": "its worker left the group, and the delay is over",
    "came_back": "the worker joined without work while the delay ran",
    "eager": "the eager protocol assigns all work again in each rebalance",
}
_UNEXPLAINED = "the leader assigned it; caughtup does not know why"
_FORESEEN = "no worker has it, and the next round assigns it to this one"


def movements(before: Watch | None, after: Watch) -> Iterator[ConnectMovementRecord]:
    """Yield a generation's movements, in order.

    Of a first generation only planned ones: the owners before it are unknown.
    """
    generation, at_ms = after.generation, max(after.generation.as_of_ms, 0)
    planned, plan = {} if before is None else _plan(before), _plan(after)
    had = {} if before is None else _owners(before, owned_then=True)
    given = {} if before is None else _owners(after, owned_then=False)
    decision = after.comparison.decision
    because = {} if decision is None else decision.assigned_because

    def event(
        step: Step, item: Item, to: str, reason: str, why: str | None = None
    ) -> ConnectMovementRecord:
        task = item if isinstance(item, ConnectorTaskId) else None
        return ConnectMovementRecord(
            schema=CONNECT.schema,
            kind="connector" if task is None else "connector-task",
            event=step,
            group=generation.group,
            generation=generation.generation,
            at_ms=at_ms,
            connector=item if isinstance(item, str) else item.connector,
            to=to,
            reason=reason,
            task=ABSENT if task is None else task.task,
            from_=or_absent(had.get(item)),
            why=or_absent(why),
        )

    for item in _in_order(planned):
        to = planned[item]
        if given.get(item, to) != to:
            yield event("dropped", item, to, _FORESEEN, f"it was assigned to {given[item]}")
        elif item not in given and plan.get(item) != to:
            yield event("dropped", item, to, _FORESEEN, "it is no longer planned")
    for item in _in_order(given):
        reason = _REASONS[because[item]] if item in because else _UNEXPLAINED
        if planned.get(item) != given[item]:
            yield event("planned", item, given[item], reason)
        yield event("promoted", item, given[item], reason)
    for item in _in_order(plan):
        if planned.get(item) != plan[item]:
            yield event("planned", item, plan[item], _FORESEEN)


def _plan(watch: Watch) -> dict[Item, str]:
    """Return the id of the worker that will get each unassigned item."""
    workers = watch.generation.workers
    unassigned: tuple[Item, ...] = (*watch.unassigned.connectors, *watch.unassigned.tasks)
    return {
        item: worker_id(workers[watch.forecast.goes_to[item]])
        for item in unassigned
        if item in watch.forecast.goes_to
    }


def _owners(watch: Watch, *, owned_then: bool) -> dict[Item, str]:
    """Return the worker of each item that runs after the generation, or is newly assigned."""
    found: dict[Item, str] = {}
    for worker in watch.generation.workers.values():
        work = worker.owns
        if not owned_then:
            work = ConnectorsAndTasks() if worker.assignment is None else worker.assignment.assigned
        items: tuple[Item, ...] = (*work.connectors, *work.tasks)
        found.update(dict.fromkeys(items, worker_id(worker)))
    return found


def _in_order(items: Mapping[Item, str]) -> list[Item]:
    return sorted(items, key=lambda item: (not isinstance(item, str), item))
