"""The movements of a minimal-movement decision, with their reasons as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caughtup.models.assignment.decision import Movement, MovementKind, Rule
from caughtup.models.assignment.explanation import lag_clause, new_standby, no_warm_up_left
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import NO_CLIENT, ExistingCopies
from caughtup.models.assignors.minimal.plan import Plan
from caughtup.models.assignors.minimal.staging import Replacement, StagedAssignment
from caughtup.models.ids import ProcessId, TaskId

_ORDER = {kind: place for place, kind in enumerate(MovementKind)}


def explain_minimal(
    scenario: Scenario,
    copies: ExistingCopies,
    plan: Plan,
    now: StagedAssignment,
    stateless: Sequence[int],
) -> tuple[Movement, ...]:
    """Return the movements from what each client had to what it has now, or will have later."""
    movements = [
        *_Explanation(scenario, copies, plan, now).movements(),
        *_stateless(scenario, stateless),
    ]
    movements.sort(key=lambda m: (m.task, _ORDER[m.kind], m.destination))
    return tuple(movements)


class _Explanation:
    def __init__(
        self, scenario: Scenario, copies: ExistingCopies, plan: Plan, now: StagedAssignment
    ) -> None:
        self._tasks = scenario.stateful
        self._processes = [client.process_id for client in scenario.clients]
        self._configs = scenario.configs
        self._copies = copies
        self._plan = plan
        self._now = now

    def movements(self) -> Iterator[Movement]:
        for task, active in enumerate(self._now.actives):
            if active != self._copies.owner[task]:
                yield self._hand_over(task, active)
        for one in self._now.replacements:
            yield self._replacement(one)
        for task in self._now.swaps:
            yield self._swap(task)
        warming = {(one.task, one.client) for one in self._now.replacements}
        for task, clients in enumerate(self._now.standbys):
            for client in clients:
                if task not in self._copies.roles[client] and (task, client) not in warming:
                    yield self._standby(task, client)

    def _hand_over(self, task: int, active: int) -> Movement:
        copies, owner = self._copies, self._copies.owner[task]
        state = lag_clause(copies.lags[active][task])
        if copies.caught_up(task, active):
            kind = MovementKind.ACTIVE
            reason = f"the destination {state}, so it can take the task over at once"
            if active != self._plan.clients[task][0]:
                belongs = self._processes[self._plan.clients[task][0]]
                reason = f"{reason}, until {belongs} is caught up"
        else:
            kind = MovementKind.COLD
            reason = f"no client is caught up and none lags less than this one, which {state}"
        if owner == NO_CLIENT:
            reason = f"no client ran it before; {reason}"
        return self._movement(task, None if owner == NO_CLIENT else owner, active, kind, reason)

    def _replacement(self, one: Replacement) -> Movement:
        copies, most = self._copies, self._configs.max_warmup_replicas
        new = one.client not in copies.holders[one.task]
        if new:
            why = "this is one of the fewest new copies that balance the threads"
        else:
            why = "the destination already has a copy, so no new one has to be built"
        reason = (
            f"{why}; the destination {lag_clause(copies.lags[one.client][one.task])} "
            f"({self._configs.acceptable_recovery_lag:,} accepted), "
            f"and the source {lag_clause(copies.lags[one.stand_in][one.task])} and "
            f"{'serves' if one.active else 'stands by'} meanwhile"
        )
        if one.warm_up is None:
            kind, reason = MovementKind.WAITING, f"{reason}; {no_warm_up_left(most)}"
        else:
            kind, reason = MovementKind.WARMUP, f"{reason}: warm-up {one.warm_up:,} of {most:,}"
        return self._movement(one.task, one.stand_in, one.client, kind, reason, deferred=True)

    def _swap(self, task: int) -> Movement:
        server, active = self._now.actives[task], self._plan.clients[task][0]
        reason = (
            f"the active belongs on the destination, which has the standby and "
            f"{lag_clause(self._copies.lags[active][task])} "
            f"({self._configs.acceptable_recovery_lag:,} accepted); "
            f"the source {lag_clause(self._copies.lags[server][task])} and serves meanwhile"
        )
        return self._movement(task, server, active, MovementKind.SWAP, reason, deferred=True)

    def _standby(self, task: int, client: int) -> Movement:
        lag = lag_clause(self._copies.lags[client][task])
        if client not in self._plan.clients[task]:
            reason = f"it stands by until the copy on the planned destination is caught up; the destination {lag}"
        elif client == self._plan.clients[task][0]:
            reason = f"a copy was missing, and the active belongs here; the destination {lag}"
        else:
            reason = f"{new_standby(self._configs.num_standby_replicas)}; the destination {lag}"
        return self._movement(task, None, client, MovementKind.STANDBY, reason)

    def _movement(
        self,
        task: int,
        source: int | None,
        destination: int,
        kind: MovementKind,
        reason: str,
        *,
        deferred: bool = False,
    ) -> Movement:
        lags, rule = self._copies.lags, None
        if deferred and source is not None:
            rule = Rule.MOST_CAUGHT_UP
            if self._copies.caught_up(task, source):
                rule = Rule.CAUGHT_UP
        return Movement(
            self._tasks[task],
            None if source is None else self._processes[source],
            self._processes[destination],
            kind,
            reason,
            lags[destination][task],
            None if source is None else lags[source][task],
            rule,
        )


def _stateless(scenario: Scenario, places: Sequence[int]) -> Iterator[Movement]:
    """Yield the stateless tasks that are on another client than before."""
    owners: dict[TaskId, ProcessId] = {}
    for client in reversed(scenario.clients):
        owners.update(dict.fromkeys(client.previous_active, client.process_id))
    for task, place in zip(scenario.stateless, places, strict=True):
        destination, owner = scenario.clients[place].process_id, owners.get(task)
        if destination == owner:
            continue
        reason = "no client ran it before; the destination has the fewest actives per thread"
        if owner is not None:
            reason = "the source has more actives per thread than the destination"
        yield Movement(task, owner, destination, MovementKind.STATELESS, reason)
