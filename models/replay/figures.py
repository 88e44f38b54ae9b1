"""What it takes until a changed group is balanced: as it was recorded, or played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.catch_up import RUNNING, UNKNOWN
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Client, Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import TaskId
from caughtup.models.replay.recorded import Episode, RecordedGeneration
from caughtup.models.simulation.rounds import PlayedRounds, end_offsets, play

#: A group that isn't balanced after so many rounds is taken to be none that ever is.
MOST_ROUNDS = 2_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What it takes, from a change of membership on, until the group is balanced.

    ``copies_built`` of state, for which ``offsets_copied`` were restored, None where a lag was
    unknown. ``rebalances`` after the one of the change itself. ``seconds``: measured of what was
    recorded; otherwise ``estimated``, an interval a rebalance, and where the copies' pace is known
    as many rebalances as they need to catch up at it, and the last ones' time. Cold hand-overs
    are ``avoidable`` where some client was caught up. The imbalances are the most minus the fewest
    tasks with state a stream thread, in the end. Not ``balanced``: the next change came first, or
    ``MOST_ROUNDS`` did. ``seconds_still`` are those that tasks stood still from the rebalance of
    the change on, all of them together, and ``longest_still_seconds`` those of the one that did
    longest, played in virtual time; None of what was recorded, where an active has to be restored
    at a pace that isn't known, and where it has no end.
    """

    copies_built: int
    offsets_copied: int | None
    rebalances: int
    seconds: float
    estimated: bool
    paced: bool
    cold_hand_overs: int
    avoidable_cold_hand_overs: int
    active_imbalance: float
    copy_imbalance: float
    balanced: bool
    seconds_still: float | None = None
    longest_still_seconds: float | None = None


def what_would_have(scenario: Scenario, rate: float | None = None) -> tuple[Decision, Figures]:
    """Play a scenario until it is balanced: its first decision, and what it all takes.

    ``rate`` is how many offsets a copy catches up in a second; without it every copy is caught up
    by the next rebalance. Raises ScenarioError where the assignor does.
    """
    interval = scenario.configs.probing_rebalance_interval_ms / 1000
    first: list[tuple[Scenario, Decision]] = []
    last: list[tuple[Scenario, Decision]] = []

    def decided(given: Scenario) -> Decision:
        decision = decide(given)
        last[:] = [(given, decision)]
        first.extend(last if not first else [])
        return decision

    outcome = play(
        scenario,
        decide=decided,
        offsets_a_round=None if rate is None else max(1, int(rate * interval)),
        most_rounds=MOST_ROUNDS,
    )
    rebalances = outcome.rounds - 1
    seconds = rebalances * interval
    if rate is not None:
        seconds += _furthest_behind(*last[0], end_offsets(scenario)) / rate
    return first[0][1], _figures(
        [outcome], rebalances, seconds, estimated=True, paced=rate is not None
    )


def what_happened(episode: Episode) -> Figures:
    """Count what was recorded from a change of membership on, until the next one.

    A rebalance that follows at once because a task had to be let go of first counts, too.
    """
    outcomes = []
    before = episode.before
    for one in episode.generations:
        scenario = _as_given_before(parse_scenario(one.scenario), before)
        decision = _as_assigned(scenario, one)
        outcomes.append(play(scenario, decide=_always(decision), most_rounds=1))
        before = one
    elapsed_ms = episode.generations[-1].as_of_ms - episode.generations[0].as_of_ms
    return _figures(outcomes, len(outcomes) - 1, elapsed_ms / 1000, estimated=False, paced=False)


def _figures(
    outcomes: Sequence[PlayedRounds],
    rebalances: int,
    seconds: float,
    *,
    estimated: bool,
    paced: bool,
) -> Figures:
    offsets = [one.offsets_restored for one in outcomes]
    known = [count for count in offsets if count is not None]
    last = outcomes[-1]
    return Figures(
        copies_built=sum(one.copies_built for one in outcomes),
        offsets_copied=sum(known) if len(known) == len(offsets) else None,
        rebalances=rebalances,
        seconds=seconds,
        estimated=estimated,
        paced=paced,
        cold_hand_overs=sum(one.cold_hand_overs for one in outcomes),
        avoidable_cold_hand_overs=sum(one.avoidable_cold_hand_overs for one in outcomes),
        active_imbalance=last.active_spread,
        copy_imbalance=last.copy_spread,
        balanced=last.converged,
    )


def _as_given_before(scenario: Scenario, before: RecordedGeneration | None) -> Scenario:
    """Have clients stand by for what they were given before.

    A copy whose restoration has hardly begun isn't reported, and must not count as built again.
    """
    if before is None:
        return scenario
    return replace(scenario, clients=tuple(_with_given(one, before) for one in scenario.clients))


def _with_given(client: Client, before: RecordedGeneration) -> Client:
    given = {TaskId.parse(task) for task in before.held(str(client.process_id))}
    return replace(
        client, previous_standby=client.previous_standby | (given - client.previous_active)
    )


def _as_assigned(scenario: Scenario, one: RecordedGeneration) -> Decision:
    """Return what the members were assigned, as a decision."""
    stateful, clients = frozenset(scenario.stateful), {}
    for client in scenario.clients:
        given = one.assigned["clients"].get(str(client.process_id), {"active": (), "standby": ()})
        active, standby = (
            tuple(sorted(map(TaskId.parse, given[kind]))) for kind in ("active", "standby")
        )
        standby = tuple(task for task in standby if task in stateful)
        clients[client.process_id] = ClientDecision(active, standby, ())
    return Decision(one.assigned["probing_rebalance_needed"], clients, tuple)


def _always(decision: Decision) -> Callable[[Scenario], Decision]:
    return lambda _: decision


def _furthest_behind(scenario: Scenario, decision: Decision, ends: Mapping[TaskId, int]) -> int:
    """Return how far the furthest copy is behind that a decision leaves to be restored, in offsets."""
    most = 0
    for client in scenario.clients:
        given = decision.clients[client.process_id]
        for task in (*given.active, *given.standby):
            lag = client.lags.get(task, RUNNING)
            if lag != RUNNING and not (lag == UNKNOWN and task in client.previous_active):
                most = max(most, ends[task] if lag == UNKNOWN else lag)
    return most
