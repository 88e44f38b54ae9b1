"""The sticky assignor of Kafka Streams' public interface (KIP-924), decision for decision."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka.client_loads import ClientLoads
from caughtup.models.assignors.kafka.public_sticky.racks import PublicRackOptimiser
from caughtup.models.assignors.kafka.stickiness import (
    StickyHistory,
    TaskPairs,
    explain_sticky,
    order_of_clients,
    require_countable,
    unassigned_tasks,
)
from caughtup.models.ids import ProcessId, TaskId


def decide_public_sticky(
    scenario: Scenario,
    *,
    arrival: Sequence[ProcessId] | None = None,
    standby_order: Sequence[TaskId] | None = None,
) -> Decision:
    """Decide as the public StickyTaskAssignor of Kafka 4.3.1 does.

    Tasks stay where they were as far as the threads' shares allow, each share rounded down;
    releases with KAFKA-20198 round it up. The assignor ignores lags, warm-ups and client tags, and
    never asks for a follow-up rebalance.

    ``arrival`` are the clients in the order in which the leader read their first subscriptions; by
    default in ascending order of process ids. ``standby_order`` is the order in which stateful
    tasks get their standbys; by default TaskId order. Kafka keeps these in a HashSet of objects
    with identity hash codes, so that its order differs from run to run: an application's standbys
    may differ from this decision although all other inputs are known. Actives never depend on it.

    Raises ScenarioError ``unsupported`` where Kafka's own counts overflow: for more than 46,341
    tasks or 2,147,483,647 stream threads. Source:
    org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor.
    """
    require_countable(scenario)
    process_ids = [client.process_id for client in scenario.clients]
    order = order_of_clients(
        process_ids,
        process_ids if arrival is None else arrival,
        scenario.configs.num_standby_replicas,
    )
    clients = [ClientState(client) for client in scenario.clients]
    history = StickyHistory(scenario.clients, order)
    state = _AssignmentState(clients, history, order)
    racks = PublicRackOptimiser(scenario, clients, order.everyone)

    state.assign_actives(scenario)
    first_actives = [frozenset(client.active) for client in clients]
    racks.optimise_stateful()
    state.note_exchanges()
    racks.optimise_stateless()
    state.note_exchanges()
    state.assign_standbys(
        scenario.stateful if standby_order is None else standby_order,
        scenario.configs.num_standby_replicas,
        TaskPairs(first_actives, clients),
    )
    racks.optimise_standbys()
    state.note_exchanges()
    return Decision(
        probing_rebalance_needed=False,
        clients={
            client.process_id: ClientDecision(
                active=tuple(sorted(client.active)),
                standby=tuple(sorted(client.standby)),
                warmup=(),
                placed=tuple(placed),
            )
            for client, placed in zip(clients, state.placed, strict=True)
        },
        explain=lambda: explain_sticky(scenario, clients, history, first_actives),
    )


class _AssignmentState:
    """Assigns tasks to clients, which are places in the order of process ids.

    ``placed`` has each client's tasks in the order in which they were assigned. Source:
    StickyTaskAssignor.AssignmentState.
    """

    def __init__(
        self, clients: Sequence[ClientState], history: StickyHistory, order: ClientHashOrder
    ) -> None:
        self._clients = clients
        self._history = history
        self._order = order
        self._everyone = order.of_all_but(frozenset())
        self._loads = self._new_loads()
        self._pairs: TaskPairs | None = None
        self.placed: list[list[TaskId]] = [[] for _ in clients]

    def _new_loads(self) -> ClientLoads[float]:
        """Return the clients' tasks per stream thread.

        Unlike the internal sticky assignor, the public one doesn't compare threads if two clients
        have equal loads: it takes the first. Source: StickyTaskAssignor.AssignmentState.clientLoad.
        """
        return ClientLoads(self._clients, self._everyone, ClientState.task_load)

    def note_exchanges(self) -> None:
        """Update ``placed`` after exchanges, which add new tasks in TaskId order."""
        for place, client in enumerate(self._clients):
            tasks = client.active | client.standby
            kept = [task for task in self.placed[place] if task in tasks]
            self.placed[place] = kept + sorted(tasks.difference(kept))

    def assign_actives(self, scenario: Scenario) -> None:
        """Assign tasks to previous owners, then to previous standbys, and then the rest.

        The first two only until a client is full, that is, has an even share per thread, rounded
        down.
        """
        tasks = sorted((*scenario.stateful, *scenario.stateless))
        per_thread = len(tasks) // sum(client.capacity for client in self._clients)

        def is_full(place: int) -> bool:
            client = self._clients[place]
            return len(client.active) >= client.capacity * per_thread

        known = frozenset(tasks)
        unassigned = unassigned_tasks(tasks)
        for task, place in self._history.owners():
            if task in known and not is_full(place):
                self._give_active(task, place)
                unassigned.remove(task)
        remaining: list[TaskId] = []
        for task in unassigned:
            for place in self._history.standbys(task):
                if not is_full(place):
                    self._give_active(task, place)
                    break
            else:
                remaining.append(task)
        self._loads = self._new_loads()
        for task in sorted(remaining):
            place = self._choose(task, frozenset(), self._everyone, 0)
            self._give_active(task, place)
            self._loads.changed(place)

    def assign_standbys(self, tasks: Sequence[TaskId], replicas: int, pairs: TaskPairs) -> None:
        """Assign each task's standbys, in order, to clients without a copy of it.

        Clients are preferred that have a task which never shared a client with this one. With too
        few clients a task gets fewer standbys.
        """
        self._pairs = pairs
        self._loads = self._new_loads()
        runs_on = {t: place for place, client in enumerate(self._clients) for t in client.active}
        for task in tasks:
            holders = {runs_on[task]}
            while len(holders) <= replicas:
                candidates = self._order.of_all_but(holders)
                if not candidates:
                    break
                place = self._choose(task, holders, candidates, pairs.companions(task, holders))
                self._clients[place].standby.add(task)
                self.placed[place].append(task)
                pairs.add_standby(task, place)
                self._loads.changed(place)
                holders.add(place)

    def _give_active(self, task: TaskId, place: int) -> None:
        self._clients[place].active.add(task)
        self.placed[place].append(task)

    def _choose(
        self, task: TaskId, holders: AbstractSet[int], candidates: Sequence[int], companions: int
    ) -> int:
        """Choose a client for a task: a previous one, unless balance requires another.

        ``candidates`` are all clients except ``holders``; there is at least one. ``companions`` are
        the tasks that have shared a client with this one. Source:
        StickyTaskAssignor.AssignmentState.findBestClientForTask.
        """
        if len(candidates) == 1:
            return candidates[0]
        had_standby = [p for p in self._history.copied_standbys(task) if p not in holders]
        standby = self._least_loaded(had_standby, companions)
        owner = self._history.owner(task)
        previous = owner if owner is not None and owner not in holders else standby
        for place in (previous, standby):
            if place is not None and not self._loads.should_give_way(place):
                return place
        chosen = self._least_loaded(candidates, companions)
        assert chosen is not None, "there are candidates"
        return chosen

    def _least_loaded(self, places: Sequence[int], companions: int) -> int | None:
        """Return the least loaded client, preferably one with a task that is no companion.

        A task that is placed for the first time has no companions.
        """
        if self._pairs is None and places is self._everyone:
            return self._loads.least()
        loads = self._loads.ranks
        best = None
        for place in places:
            load = loads[place]
            if not load:
                return place
            if (best is None or load < loads[best]) and (
                self._pairs is None or self._pairs.has_new(place, companions)
            ):
                best = place
        return min(places, key=loads.__getitem__, default=None) if best is None else best
