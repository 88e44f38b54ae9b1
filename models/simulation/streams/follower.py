"""A leader that follows recommendations, in virtual time, and the service that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.follower import (
    FollowerDecision,
    FollowUpCounter,
    Patience,
    follow,
)
from caughtup.models.assignors.following.placement import ClientStates
from caughtup.models.assignors.following.recommendation import FollowedRecommendation, Objection
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.simulation.virtual_time import VirtualTime

#: The time from a generation to its recommendation: to list end offsets, decide and publish.
RECOMMENDED_AFTER_MS = 1_000
_NONE_YET = Objection("other_processes", "it is for other processes than those in the group")


class FollowingLeader:
    """Decides rebalances as a leader that is a follower does.

    The service publishes a recommendation for the processes of a generation, and again whenever a
    copy has caught up; so the recommendation is what its assignor decides at the rebalance.
    """

    def __init__(self, time: VirtualTime, patience: Patience) -> None:
        self._time = time
        self._patience = patience
        self._counter = FollowUpCounter(patience)
        self._known: frozenset[ProcessId] = frozenset()
        self._known_from_ms = 0
        self._follow_up_ms: int | None = None

    def begin_with(self, processes: Iterable[ProcessId]) -> None:
        """Begin with a generation of these processes, which has a recommendation."""
        self._known, self._known_from_ms = frozenset(processes), self._time.now_ms

    def decide(self, scenario: Scenario) -> Decision:
        """Decide a rebalance. Raises ScenarioError as assignors do."""
        now_ms = self._time.now_ms
        states = ClientStates(scenario)
        self._counter.begin(
            {
                process: {task for task in scenario.stateful if states.caught_up(process, task)}
                for process in states.clients
            },
            now_ms,
        )
        newest: FollowedRecommendation | Objection = _NONE_YET
        if self._known == states.clients.keys() and now_ms >= self._known_from_ms:
            newest = _recommendation(scenario)
        if self._known != states.clients.keys():
            self._known = frozenset(states.clients)
            self._known_from_ms = now_ms + RECOMMENDED_AFTER_MS
        counter = self._counter
        decided = follow(
            scenario,
            newest,
            waited=counter.waited,
            repeated=counter.repeated,
            patience=self._patience,
        )
        counter.count(decided, now_ms)
        self._follow_up_ms = decided.follow_up_ms
        return _decision(decided)

    def with_follow_up(
        self, assigned: Mapping[str, MemberAssignment], epoch_ms: int
    ) -> Mapping[str, MemberAssignment]:
        """Return assignments in which the next rebalance, if any, is at the follower's time."""
        due_ms = epoch_ms + self._time.now_ms + (self._follow_up_ms or 0)
        return {
            member_id: replace(given, next_rebalance_ms=due_ms)
            if given.next_rebalance_ms
            else given
            for member_id, given in assigned.items()
        }


def _recommendation(scenario: Scenario) -> FollowedRecommendation:
    decision = decide(scenario)
    return FollowedRecommendation(
        decision_id="simulated",
        active={task: process for process, one in decision.clients.items() for task in one.active},
        standby={process: frozenset(one.standby) for process, one in decision.clients.items()},
        found={
            task: frozenset(
                client.process_id for client in scenario.clients if task in client.previous_active
            )
            for task in (*scenario.stateful, *scenario.stateless)
        },
        config={},
        probing_needed=decision.probing_rebalance_needed,
        worthwhile_after_ms=None,
    )


def _decision(decided: FollowerDecision) -> Decision:
    return Decision(
        decided.follow_up_ms is not None,
        {
            process: ClientDecision(
                active=active,
                standby=decided.standby[process],
                warmup=(),
                placed=tuple(sorted((*active, *decided.standby[process]))),
            )
            for process, active in sorted(decided.active.items())
        },
        explain=tuple,
    )
