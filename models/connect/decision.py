"""A round of a Connect group: the leader's input, what it decides and why, and what workers own then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from caughtup.models.assignors.java.strings import in_hash_set_order
from caughtup.models.connect.work import NO_WORK, Item, Work
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

#: The default of ``scheduled.rebalance.max.delay.ms``.
MAX_DELAY_MS = 300_000


@dataclass(frozen=True, slots=True)
class Round:
    """A leader's input.

    ``time_ms`` is the leader's clock, in ms since the epoch. ``connectors`` is the configuration
    that it has read: connector → number of tasks. ``workers`` has what each worker owns, in the
    order in which the coordinator lists them, connectors and tasks in the order of the wire:
    Java's iteration order shows in the decision. ``last_completed`` is whether the leader's last
    round was synced and no other worker has led a round since.
    """

    time_ms: int
    connectors: Mapping[str, int]
    workers: Mapping[str, ConnectorsAndTasks]
    last_completed: bool = True


@dataclass(frozen=True, slots=True)
class Memory:
    """What a leader remembers from one round to the next; a new leader remembers nothing.

    ``assigned`` is all that should run, lost work included; ``revoked`` is what the last round
    revoked. ``members`` are the workers of the last round, ``candidates`` those that joined
    without work while a delay ran, in order: they will get the lost work.
    ``scheduled_rebalance_ms`` is when a delay ends, by the leader's clock, 0 without one;
    ``delay_ms`` is what was left of it at the last round. ``revoked_last`` is whether that round
    revoked work for balance, and ``successive_revocations`` how many rounds in a row wanted to
    after it, by which the leader backs off.
    """

    assigned: Work = NO_WORK
    revoked: Work = NO_WORK
    members: frozenset[str] = frozenset()
    candidates: tuple[str, ...] = ()
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    revoked_last: bool = False
    successive_revocations: int = 0


NO_MEMORY = Memory()


class Assigned(StrEnum):
    """Why a worker is assigned a connector or a task.

    ``new``: no worker runs it, and the leader remembers none that did. ``not_received``: it was
    assigned to a worker that did not get that assignment. ``no_delay``: it is lost, and there is no
    delay. ``delay_over``: it is lost, and no worker without work joined in time. ``came_back``: it
    is lost, and goes to a worker that joined without work during the delay. ``eager``: the eager
    assignor assigns all work in every round.
    """

    NEW = "new"
    NOT_RECEIVED = "not_received"
    NO_DELAY = "no_delay"
    DELAY_OVER = "delay_over"
    CAME_BACK = "came_back"
    EAGER = "eager"


class Revoked(StrEnum):
    """Why a connector or a task is revoked from a worker.

    ``deleted``: it is no longer configured. ``duplicated``: other workers run it, too, and it is
    revoked from all of them. ``balance``: the worker has more than its share.
    """

    DELETED = "deleted"
    DUPLICATED = "duplicated"
    BALANCE = "balance"


class Delayed(StrEnum):
    """Why the leader announces a delay.

    ``departed``: a worker left in this round, and may come back. ``waiting``: one left in an
    earlier round. ``back_off``: the last round revoked work for balance, and this one would again.
    """

    DEPARTED = "departed"
    WAITING = "waiting"
    BACK_OFF = "back_off"


@dataclass(frozen=True, slots=True)
class WorkerDecision:
    """What a worker is to start and to stop, in the order in which the leader decided it.

    ``postponed`` is what the worker has beyond its share and keeps while the back-off lasts.
    """

    assigned: ConnectorsAndTasks = NOTHING
    revoked: ConnectorsAndTasks = NOTHING
    postponed: ConnectorsAndTasks = NOTHING


@dataclass(frozen=True, slots=True)
class ConnectDecision:
    """A round's decision.

    ``workers`` are in the order of the round. ``unassigned`` is what is configured and no worker
    runs after the round: lost work that waits, and revoked work, which the next round assigns.
    Lost work goes at ``reassign_at_ms`` (ms, by the leader's clock; None without a delay) to
    ``candidates`` in turn or, if none of them is there then, to the worker with the fewest.
    ``revoked_because`` has the reason of each revocation. Each assignment's reason is in
    ``again_because``, else it is ``given_because``.
    """

    delay_ms: int
    delayed: Delayed | None
    workers: Mapping[str, WorkerDecision]
    revoked_because: Mapping[Item, Revoked]
    again_because: Mapping[Item, Assigned]
    given_because: Assigned = Assigned.NEW
    unassigned: ConnectorsAndTasks = NOTHING
    reassign_at_ms: int | None = None
    candidates: tuple[str, ...] = ()

    @property
    def assigned_because(self) -> dict[Item, Assigned]:
        """Return why each connector and task is assigned."""
        items: list[Item] = []
        for one in self.workers.values():
            items += one.assigned.connectors
            items += one.assigned.tasks
        return {item: self.again_because.get(item, self.given_because) for item in items}


def owned_after(owned: ConnectorsAndTasks, decision: WorkerDecision) -> ConnectorsAndTasks:
    """Return what a worker owns after a decision, newly assigned work first, in wire order.

    The order decides what is revoked first later. Source: Connect's ``WorkerCoordinator`` and
    ``ExtendedAssignment``.
    """
    new = on_the_wire(decision.assigned)
    gone_connectors = set(decision.revoked.connectors)
    gone_tasks = set(decision.revoked.tasks)
    return on_the_wire(
        ConnectorsAndTasks(
            (*new.connectors, *(one for one in owned.connectors if one not in gone_connectors)),
            (*new.tasks, *(task for task in owned.tasks if task not in gone_tasks)),
        )
    )


def on_the_wire(work: ConnectorsAndTasks) -> ConnectorsAndTasks:
    """Return assigned work in the order of the wire: connectors as a Java HashSet iterates.

    A connector's tasks stand together, first those of connectors that are themselves assigned.
    """
    connectors = in_hash_set_order(work.connectors)
    tasks: dict[str, list[ConnectorTaskId]] = {connector: [] for connector in connectors}
    for task in work.tasks:
        tasks.setdefault(task.connector, []).append(task)
    return ConnectorsAndTasks(tuple(connectors), tuple(_flat(tasks.values())))


def _flat(lists: Iterable[Iterable[ConnectorTaskId]]) -> Iterable[ConnectorTaskId]:
    return (task for one in lists for task in one)
