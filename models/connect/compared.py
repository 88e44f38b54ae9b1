"""A comparison of what is configured, what workers run and what their leader remembers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from caughtup.models.connect.decision import Memory, Revoked, Round
from caughtup.models.connect.work import NO_WORK, Configured, Item, Work
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


@dataclass(frozen=True, slots=True)
class Compared:
    """A round's work by what the leader has to do with it.

    ``active`` is what any worker runs. ``deleted`` is remembered and not configured,
    ``duplicated`` is run by more than one worker, and ``taken`` is the union of both, which the
    leader revokes. ``lost`` is remembered and configured, and no worker runs it; ``created`` is
    configured, and neither remembered nor run, in order. ``once`` is whether each item was named
    once only.
    """

    configured: Configured
    active: Work
    deleted: Work
    duplicated: Work
    taken: Work
    lost: Work
    created: ConnectorsAndTasks
    once: bool

    def reasons_to_revoke(self, revoked: Work) -> dict[Item, Revoked]:
        """Return why each connector and task is revoked."""
        reasons: dict[Item, Revoked] = {}
        for connector in revoked.connectors:
            reasons[connector] = self._reason(
                connector in self.deleted.connectors, connector in self.duplicated.connectors
            )
        for task in revoked.tasks:
            reasons[task] = self._reason(task in self.deleted.tasks, task in self.duplicated.tasks)
        return reasons

    def _reason(self, deleted: bool, duplicated: bool) -> Revoked:
        if deleted:
            return Revoked.DELETED
        return Revoked.DUPLICATED if duplicated else Revoked.BALANCE


def compare(round_: Round, memory: Memory) -> Compared:
    """Return a round's work compared with what its leader remembers.

    A leader whose last round failed remembers no assignment. A leader that finds work running
    that it revoked takes what runs now as its assignment.
    """
    configured = Configured(round_.connectors)
    active = Work.of(round_.workers.values())
    previous = memory.assigned if round_.last_completed else NO_WORK
    if memory.revoked.meets(active):
        previous = active
    deleted = configured.foreign(previous)
    listed = _listed(round_.workers.values())
    once = listed == (len(active.connectors), len(active.tasks))
    duplicated = NO_WORK if once else _duplicated(round_.workers.values())
    unseen = previous - active
    known = active | unseen
    foreign = deleted | configured.foreign(active - previous)
    return Compared(
        configured=configured,
        active=active,
        deleted=deleted,
        duplicated=duplicated,
        taken=deleted | duplicated,
        lost=unseen - deleted,
        created=configured.missing(known, foreign),
        once=once,
    )


def _listed(owned: Collection[ConnectorsAndTasks]) -> tuple[int, int]:
    """Return the numbers of connectors and of tasks that workers name, duplicates included."""
    return sum(len(one.connectors) for one in owned), sum(len(one.tasks) for one in owned)


def _duplicated(owned: Iterable[ConnectorsAndTasks]) -> Work:
    """Return what more than one worker runs."""
    connectors: set[str] = set()
    tasks: set[ConnectorTaskId] = set()
    twice = NO_WORK
    for worker in owned:
        again = Work(
            frozenset(connectors.intersection(worker.connectors)),
            frozenset(tasks.intersection(worker.tasks)),
        )
        if again:
            twice |= again
        connectors.update(worker.connectors)
        tasks.update(worker.tasks)
    return twice
