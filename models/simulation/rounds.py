"""Play a group's rebalances until nothing is left to do, and count what that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TaskId

#: The default for the most rounds that are played.
MOST_ROUNDS = 10_000


@dataclass(frozen=True, slots=True)
class PlayedRounds:
    """The result of playing a group's rebalances.

    ``rounds`` is the number of decisions, the last one included, which needs no probing rebalance
    if the group ``converged``. A copy is built when a client is assigned a task of which it has no
    state, as the active, a standby or a warm-up; ``offsets_restored`` is the total of all copies,
    None if a lag was unknown. A hand-over is cold if a client that isn't caught up gets the active;
    it was avoidable if another client was caught up. Extra copies are those beyond the active and
    its standbys of each task; the greatest number of any round counts. A warm-up is wasted if its
    client loses the copy in the next round. The spreads are the greatest minus the least number of
    tasks per stream thread, in the end: of stateful actives, and of all copies.
    """

    converged: bool
    rounds: int
    copies_built: int
    offsets_restored: int | None
    cold_hand_overs: int
    avoidable_cold_hand_overs: int
    most_extra_copies: int
    wasted_warm_ups: int
    active_hand_overs: int
    active_spread: float
    copy_spread: float
    scenario: Scenario
    decision: Decision


def play(
    scenario: Scenario,
    *,
    decide: Callable[[Scenario], Decision] = decide,
    offsets_a_round: int | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> PlayedRounds:
    """Play rounds, from a scenario on, until a decision needs no probing rebalance.

    Each round is decided by the scenario's assignor, or by ``decide``, and carried out. By the next
    one every copy is caught up; with ``offsets_a_round``, it has restored at most this many
    offsets. Nothing is written meanwhile, and clients keep no state of tasks that they are no
    longer assigned. The scenario in the result is the group after the last decision was carried
    out. Raises ScenarioError as the assignor does.
    """
    ends = end_offsets(scenario)
    counts = _Counts(scenario, ends)
    for _ in range(most_rounds):
        decision = decide(scenario)
        counts.add(scenario, decision)
        scenario = next_scenario(scenario, decision, ends, offsets_a_round)
        if not decision.probing_rebalance_needed:
            break
    return PlayedRounds(
        converged=not decision.probing_rebalance_needed,
        rounds=counts.rounds,
        copies_built=counts.built,
        offsets_restored=counts.restored,
        cold_hand_overs=counts.cold,
        avoidable_cold_hand_overs=counts.avoidable,
        most_extra_copies=counts.most_extra,
        wasted_warm_ups=counts.wasted,
        active_hand_overs=counts.hand_overs,
        active_spread=spread(scenario, standbys=False),
        copy_spread=spread(scenario, standbys=True),
        scenario=scenario,
        decision=decision,
    )


def end_offsets(scenario: Scenario) -> dict[TaskId, int]:
    """Return each task's end offset sum: the greatest lag of any client."""
    return {
        task: max(0, *(client.lags[task] for client in scenario.clients))
        for task in scenario.stateful
    }


def next_scenario(
    scenario: Scenario,
    decision: Decision,
    ends: Mapping[TaskId, int],
    offsets_a_round: int | None = None,
) -> Scenario:
    """Return the scenario of the next round, in which a decision is carried out. See ``play``.

    ``ends`` are the lags of a client without state, which is what it has of a task it isn't
    assigned.
    """
    clients = tuple(
        replace(
            client,
            previous_active=frozenset(given.active),
            previous_standby=frozenset(given.standby),
            lags=_lags(client, given, ends, offsets_a_round),
        )
        for client in scenario.clients
        for given in (decision.clients[client.process_id],)
    )
    return replace(scenario, clients=clients)


def spread(scenario: Scenario, *, standbys: bool) -> float:
    """Return the greatest minus the least number of stateful tasks per stream thread of any client.

    Counts the tasks that clients ran, and their standbys if ``standbys``.
    """
    stateful = frozenset(scenario.stateful)
    loads = []
    for client in scenario.clients:
        own = client.previous_active
        if standbys:
            own |= client.previous_standby
        loads.append(Fraction(len(own & stateful), client.capacity))
    return float(max(loads) - min(loads))


def _lags(
    client: Client, given: ClientDecision, ends: Mapping[TaskId, int], rate: int | None
) -> dict[TaskId, int]:
    def left(task: TaskId) -> int:
        lag = client.lags[task]
        if rate is None or lag == RUNNING:
            return 0
        return max((ends[task] if lag == UNKNOWN else lag) - rate, 0)

    lags = dict(ends)
    lags.update((task, left(task)) for task in given.standby)
    lags.update((task, left(task) or RUNNING) for task in given.active if task in ends)
    return lags


class _Counts:
    """Counts the figures of a PlayedRounds, round by round."""

    def __init__(self, scenario: Scenario, ends: Mapping[TaskId, int]) -> None:
        self._ends = ends
        self._acceptable = scenario.configs.acceptable_recovery_lag
        others = len(scenario.clients) - 1
        self._copies = len(ends) * (1 + min(scenario.configs.num_standby_replicas, others))
        self._warming: set[tuple[ProcessId, TaskId]] = set()
        self.built = self.cold = self.avoidable = self.most_extra = 0
        self.rounds = self.wasted = self.hand_overs = 0
        self.restored: int | None = 0

    def add(self, scenario: Scenario, decision: Decision) -> None:
        """Count a decision made on a scenario."""
        self.rounds += 1
        copies = 0
        warming = self._warming
        self._warming = set()
        for client in scenario.clients:
            given = decision.clients[client.process_id]
            active = [task for task in given.active if task in self._ends]
            assigned = {*active, *given.standby}
            copies += len(assigned)
            had = client.previous_active | client.previous_standby
            for task in assigned - had:
                self._count_new(task, client.lags[task])
            for task in active:
                if task not in client.previous_active:
                    self._count_hand_over(scenario, client, task)
            self._warming.update((client.process_id, task) for task in given.warmup)
            self.wasted += sum(
                process == client.process_id and task not in assigned for process, task in warming
            )
        self.most_extra = max(self.most_extra, copies - self._copies)

    def _count_new(self, task: TaskId, lag: int) -> None:
        self.built += lag == UNKNOWN or lag >= self._ends[task] > 0
        if lag == UNKNOWN:
            self.restored = None
        elif self.restored is not None:
            self.restored += max(lag, 0)

    def _count_hand_over(self, scenario: Scenario, client: Client, task: TaskId) -> None:
        self.hand_overs += 1
        if not self._caught_up(client, task):
            self.cold += 1
            self.avoidable += any(self._caught_up(one, task) for one in scenario.clients)

    def _caught_up(self, client: Client, task: TaskId) -> bool:
        lag = client.lags[task]
        ran = lag == UNKNOWN and task in client.previous_active
        return ran or is_caught_up(lag, self._acceptable)
