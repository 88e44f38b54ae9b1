"""The cost until a changed group is balanced, as recorded or as simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN
from caughtup.models.assignment.compact import read_compact
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignment.decision import ClientDecision, DecidedTasks, Decision
from caughtup.models.assignment.scenario import Client, Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import TaskId
from caughtup.models.replay.recorded import Episode, RecordedGeneration
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.rounds import PlayedRounds, end_offsets, play
from caughtup.models.simulation.streams.plan import PlannedActions, simulate
from caughtup.models.simulation.streams.scenarios import (
    AT_ONCE,
    application_of,
    instances_of,
    sources_of,
)
from caughtup.models.simulation.time_line import Activity

#: A group that isn't balanced after this many rounds counts as never balanced.
MOST_ROUNDS = 2_000


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    """The cost from a change of membership until the group is balanced.

    ``copies_built`` of state, for which ``offsets_copied`` were restored, None if a lag was
    unknown. ``rebalances`` after the first one. ``seconds``: measured, if recorded; otherwise
    ``estimated``: an interval for each rebalance and, if the restore rate is known (``paced``), for
    each further one that the copies need to catch up, and the time of the last ones. Cold
    hand-overs are ``avoidable`` if another client was caught up. The imbalances are the greatest
    minus the least number of stateful tasks per stream thread, in the end. Not ``balanced``: the
    next change came first, or ``MOST_ROUNDS`` did. ``seconds_still`` is the standstill of all tasks
    together after the change, and ``longest_still_seconds`` the longest of one task, simulated in
    virtual time; None for recorded figures, if an active has to be restored at an unknown rate, and
    if the group never comes to rest.
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


@dataclass(frozen=True, slots=True)
class StandstillSeconds:
    """The standstill of tasks, in seconds: of all of them together, and the longest of one task."""

    seconds: float
    longest_seconds: float


def played_figures(scenario: Scenario, rate: float | None = None) -> tuple[Decision, ReplayFigures]:
    """Play a scenario until it is balanced; return its first decision, and the total cost.

    ``rate`` is the restore rate of a copy in offsets a second; without it every copy is caught up
    by the next rebalance. Raises ScenarioError as the assignor does.
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


def recorded_figures(episode: Episode) -> ReplayFigures:
    """Return the recorded cost from a change of membership until the next one.

    A rebalance that follows at once because a task had to be revoked first counts, too.
    """
    outcomes = []
    before = episode.before
    for one in episode.generations:
        scenario = _with_previous_assignment(parse_scenario(one.scenario), before)
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
) -> ReplayFigures:
    offsets = [one.offsets_restored for one in outcomes]
    known = [count for count in offsets if count is not None]
    last = outcomes[-1]
    return ReplayFigures(
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


def _with_previous_assignment(scenario: Scenario, before: RecordedGeneration | None) -> Scenario:
    """Return a scenario in which clients have standbys of all tasks that they were assigned before.

    A copy whose restoration has hardly begun isn't reported, and must not count as built again.
    """
    if before is None:
        return scenario
    return replace(scenario, clients=tuple(_with_assigned(one, before) for one in scenario.clients))


def _with_assigned(client: Client, before: RecordedGeneration) -> Client:
    given = {TaskId.parse(task) for task in before.held(str(client.process_id))}
    return replace(
        client, previous_standby=client.previous_standby | (given - client.previous_active)
    )


_NOTHING: DecidedTasks = {"active": [], "standby": [], "warmup": []}


def _as_assigned(scenario: Scenario, one: RecordedGeneration) -> Decision:
    """Return the members' recorded assignment as a decision."""
    stateful, clients = frozenset(scenario.stateful), {}
    for client in scenario.clients:
        given = one.assigned["clients"].get(str(client.process_id), _NOTHING)
        active, standby = (
            tuple(sorted(map(TaskId.parse, tasks))) for tasks in (given["active"], given["standby"])
        )
        standby = tuple(task for task in standby if task in stateful)
        clients[client.process_id] = ClientDecision(active, standby, ())
    return Decision(one.assigned["probing_rebalance_needed"], clients, tuple)


def _always(decision: Decision) -> Callable[[Scenario], Decision]:
    return lambda _: decision


def _furthest_behind(scenario: Scenario, decision: Decision, ends: Mapping[TaskId, int]) -> int:
    """Return the greatest lag, in offsets, of the copies that a decision leaves to be restored."""
    most = 0
    for client in scenario.clients:
        given = decision.clients[client.process_id]
        for task in (*given.active, *given.standby):
            lag = client.lags.get(task, RUNNING)
            if lag != RUNNING and not (lag == UNKNOWN and task in client.previous_active):
                most = max(most, ends[task] if lag == UNKNOWN else lag)
    return most


def standing_still(
    scenario: Mapping[str, object], rate: float | None, as_of_ms: int
) -> StandstillSeconds | None:
    """Simulate a group from the rebalance of a scenario until it is at rest; return the standstill.

    ``scenario`` is in the format of ``caughtup assign``, and ``rate`` the restore rate of a thread
    in offsets a second. None if the group never comes to rest, or if an active has to restore its
    state at an unknown rate. Raises ScenarioError as the assignor does.
    """
    compact = read_compact(scenario)
    application = application_of(
        sources_of(compact),
        compact,
        {},
        assignor=compact.assignor,
        configs=read_configs(compact.config),
        timings=Timings(),
        writes={},
        restore_per_second=AT_ONCE if rate is None else rate,
    )
    played = simulate(
        application, instances_of(compact), PlannedActions(rebalance=True), epoch_ms=as_of_ms
    )
    restored = any(span.activity is Activity.RESTORING for span in played.spans)
    if played.endless is not None or (rate is None and restored):
        return None
    figures = played.figures
    return StandstillSeconds(figures.all_still_ms / 1_000, figures.longest_still_ms / 1_000)
