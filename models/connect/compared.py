"""What is configured, what workers run and what their leader remembers, held against each other."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from caughtup.models.connect.configured import Configured
from caughtup.models.connect.decision import Revoked
from caughtup.models.connect.round import Memory, Round
from caughtup.models.connect.work import NO_WORK, Item, Work
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it.

    ``active`` is what any worker runs. ``deleted`` is remembered and not configured,
    ``duplicated`` is run by more than one worker, and ``taken`` is both, which nobody may keep.
    ``lost`` is remembered, configured and run by nobody, ``created`` neither remembered nor run,
    in order. ``once`` is whether nothing was named twice, by one worker or by two.
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
    """Compare a round with what its leader remembers.

    A leader whose last round failed remembers nothing of what it assigned. One that sees that some
    of what it revoked is still run takes what runs now for what it assigned.
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
    """Count connectors and tasks."""
    return sum(len(one.connectors) for one in owned), sum(len(one.tasks) for one in owned)


def _duplicated(owned: Iterable[ConnectorsAndTasks]) -> Work:
    """Return what more than one worker has."""
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
