"""The parts that both of Kafka's sticky assignors share: previous tasks, iteration orders, task pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignment.client_state import ClientState, is_caught_up
from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignment.decision import Movement, MovementKind
from caughtup.models.assignment.explanation import lag_clause
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.java.hash_map import (
    JavaHashMap,
    copied_table,
    subtopology_hash_code,
    task_hash_code,
    task_hash_code_of,
)
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId


class StickyHistory:
    """The previous tasks of clients, which are places.

    If several clients report that they ran a task, the last one counts in the order of
    ``order.everyone``. Tasks that the topology no longer has are kept, because they occupy the hash
    table and so change its order.

    Source: LegacyStickyTaskAssignor.mapPreviousTaskAssignment.
    """

    def __init__(
        self, clients: Sequence[Client], order: ClientHashOrder, release: Release = NEWEST
    ) -> None:
        self._order = order
        self._hash_code = task_hash_code_of(release)
        self._owners: dict[TaskId, int] = {}
        self._standbys: dict[TaskId, list[int]] = {}
        self._copies: dict[TaskId, list[int]] = {}
        for place in order.everyone:
            client = clients[place]
            for task in sorted(client.previous_active):
                self._owners[task] = place
            for task in client.previous_standby:
                self._standbys.setdefault(task, []).append(place)
        self._standbys = {task: order.of(places) for task, places in self._standbys.items()}

    def owner(self, task: TaskId) -> int | None:
        """Return the client that ran a task, or None."""
        return self._owners.get(task)

    def owners(self) -> Iterator[tuple[TaskId, int]]:
        """Return the tasks that ran and their clients, in the order of Java's HashMap."""
        keys = JavaHashMap[TaskId](self._hash_code, keys=self._owners)
        return ((task, self._owners[task]) for task in keys)

    def standbys(self, task: TaskId) -> Sequence[int]:
        """Return the clients that had a standby, in the order of Java's HashSet."""
        return self._standbys.get(task, ())

    def copied_standbys(self, task: TaskId) -> Sequence[int]:
        """Return the same clients in the order of a copy of that HashSet."""
        copy = self._copies.get(task)
        if copy is None:
            copy = self._copies[task] = self._order.of_copy(self.standbys(task))
        return copy


def order_of_clients(
    process_ids: Sequence[ProcessId], arrival: Sequence[ProcessId], most_excluded: int
) -> ClientHashOrder:
    """Return the order of the clients in the leader's application state.

    ``process_ids`` are in ascending order, and ``arrival`` has the same ones in the order in which
    the leader read their first subscriptions. They pass through two HashMaps, the leader's own and
    the state's, from which sets of them are filled. ``most_excluded`` is the greatest number of
    clients that such a set will ever lack.

    Source: StreamsPartitionAssignor.assign, DefaultApplicationState.kafkaStreamsStates.
    """
    places = {process_id: place for place, process_id in enumerate(process_ids)}
    by_hash = ClientHashOrder(process_ids, 0)
    everyone = by_hash.of(by_hash.of([places[process_id] for process_id in arrival]))
    return ClientHashOrder(process_ids, most_excluded, everyone)


def unassigned_tasks(tasks: Sequence[TaskId]) -> JavaHashMap[TaskId]:
    """Return the initial set of tasks of the assignor, in the order of Java's HashSet.

    The tasks are grouped by subtopology, pass through two HashMaps, and are then copied. ``tasks``
    are in TaskId order.

    Source: PartitionGrouper.partitionGroups, StreamsPartitionAssignor.buildApplicationState.
    """
    by_subtopology: defaultdict[int, list[TaskId]] = defaultdict(list)
    for task in tasks:
        by_subtopology[task.subtopology].append(task)
    subtopologies = JavaHashMap[int](subtopology_hash_code, keys=by_subtopology)
    grouped = (task for subtopology in subtopologies for task in by_subtopology[subtopology])
    found = JavaHashMap[TaskId](task_hash_code, keys=grouped)
    known = JavaHashMap[TaskId](task_hash_code, keys=found)
    return JavaHashMap[TaskId](task_hash_code, copied_table(len(tasks)), known)


_INT_MAX = (1 << 31) - 1


def require_countable(scenario: Scenario) -> None:
    """Raise ScenarioError ``unsupported`` for a scenario in which Kafka's own counts overflow."""
    tasks = len(scenario.stateful) + len(scenario.stateless)
    if tasks * (tasks - 1) > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"tasks: {tasks:,} are more than the 46,341 that this assignor can count"
        )
    threads = sum(client.capacity for client in scenario.clients)
    if threads > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"clients: {threads:,} stream threads are more than {_INT_MAX:,}"
        )


class TaskPairs:
    """The pairs of tasks that have shared a client; used while standbys are placed.

    Two actives are a pair if they were first assigned to one client, wherever they went afterwards;
    a standby pairs with all tasks that its client has then and gets later. Sets of tasks are bits
    of an int, so that a lookup takes a few operations instead of one for each pair. While actives
    are assigned there is nothing to look up: a task that was never placed has no pairs.

    Source: LegacyStickyTaskAssignor.TaskPairs.
    """

    def __init__(
        self, first_actives: Sequence[AbstractSet[TaskId]], clients: Sequence[ClientState]
    ) -> None:
        """Prepare the pairs of each client's first actives, and of its present tasks."""
        self._numbers = {
            task: number for number, task in enumerate(sorted(set[TaskId]().union(*first_actives)))
        }
        self._first_actives = {}
        for tasks in first_actives:
            self._first_actives.update(dict.fromkeys(tasks, self._bits(tasks)))
        self._active = [self._bits(client.active) for client in clients]
        self._standby = [self._bits(client.standby) for client in clients]

    def companions(self, task: TaskId, holders: Iterable[int]) -> int:
        """Return the tasks that are paired with a task, as bits.

        ``holders`` are its clients' places.
        """
        own = 1 << self._numbers[task]
        paired = self._first_actives[task]
        for place in holders:
            paired |= self._standby[place]
            if self._standby[place] & own:
                paired |= self._active[place]
        return paired

    def has_new(self, place: int, companions: int) -> bool:
        """Return whether a client has a task that isn't among the companions."""
        return bool((self._active[place] | self._standby[place]) & ~companions)

    def add_standby(self, task: TaskId, place: int) -> None:
        """Add a standby that a client was assigned."""
        self._standby[place] |= 1 << self._numbers[task]

    def _bits(self, tasks: Iterable[TaskId]) -> int:
        bits = 0
        for task in tasks:
            bits |= 1 << self._numbers[task]
        return bits


def explain_sticky(
    scenario: Scenario,
    clients: Sequence[ClientState],
    history: StickyHistory,
    first_actives: Sequence[AbstractSet[TaskId]],
) -> tuple[Movement, ...]:
    """Return the copies that clients get and didn't have before, in TaskId order.

    ``clients`` are the final states, in the scenario's order, and ``first_actives`` the actives of
    each client before tasks were exchanged between racks. The assignor ignores lags: a movement is
    ``cold`` if the client that gets the active isn't caught up.
    """
    stateful = frozenset(scenario.stateful)
    movements: list[Movement] = []
    for client, state, first_here in zip(scenario.clients, clients, first_actives, strict=True):
        for task in state.active - client.previous_active:
            owner = _owner(scenario, history, task)
            why = _why(client, owner, task) if task in first_here else _EXCHANGED
            movements.append(_active(scenario, client, owner, task, task in stateful, why))
        movements += _standbys(scenario, client, state)
    return tuple(
        sorted(movements, key=lambda m: (m.task, m.kind == MovementKind.STANDBY, m.destination))
    )


_EXCHANGED = "tasks were exchanged to save traffic between racks; the destination got this one"


def _owner(scenario: Scenario, history: StickyHistory, task: TaskId) -> Client | None:
    place = history.owner(task)
    return None if place is None else scenario.clients[place]


def _why(client: Client, owner: Client | None, task: TaskId) -> str:
    """Return the reason against the source and for the destination."""
    source = "no client ran it before" if owner is None else "the source has its share of tasks"
    had_standby = task in client.previous_standby
    return (
        f"{source}; the destination {'had its standby' if had_standby else 'is the least loaded'}"
    )


def _active(
    scenario: Scenario, client: Client, owner: Client | None, task: TaskId, stateful: bool, why: str
) -> Movement:
    source = owner.process_id if owner else None
    if not stateful:
        return Movement(task, source, client.process_id, MovementKind.STATELESS, why)
    lag, source_lag = client.lags[task], owner.lags[task] if owner else None
    caught_up = is_caught_up(lag, scenario.configs.acceptable_recovery_lag)
    kind = MovementKind.ACTIVE if caught_up else MovementKind.COLD
    reason = f"{why} and {lag_clause(lag)}"
    return Movement(task, source, client.process_id, kind, reason, lag, source_lag)


def _standbys(scenario: Scenario, client: Client, state: ClientState) -> Iterator[Movement]:
    for task in state.standby - client.previous_active - client.previous_standby:
        lag = client.lags[task]
        reason = f"one of {scenario.configs.num_standby_replicas} standbys is new here"
        reason = f"{reason}; the destination {lag_clause(lag)}"
        yield Movement(task, None, client.process_id, MovementKind.STANDBY, reason, lag)
