"""Decide a generation once it is due: recompute its leader's decision, and recommend one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.comparison import (
    ASSIGNOR,
    CLASSES,
    FOLLOWER,
    KAFKAS,
    ExactResult,
    compared,
    process_differs,
)
from caughtup.models.decisions.exact.follower import read_published, recompute_follower
from caughtup.models.decisions.inputs.application_state import (
    ApplicationState,
    find_state,
    leader_inputs,
)
from caughtup.models.decisions.inputs.gathering import GenerationInputs, gather_inputs
from caughtup.models.decisions.life import (
    END_OFFSETS_WAIT_MS,
    LEADER_STATE_WAIT_MS,
    DecidedGeneration,
    GenerationLife,
    State,
)
from caughtup.models.decisions.next_rebalance import (
    NONE_CAUGHT_UP,
    CaughtUpCopies,
    caught_up_copies,
    project,
)
from caughtup.models.decisions.recommendation import (
    planned_movements,
    recommendation,
    recorded_inputs,
)
from caughtup.models.decisions.task_table import assigned_copies
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.rebalance_ends import ListedBounds
from caughtup.models.ids import CopyKey, TopicPartition
from caughtup.models.learning.known_inputs import with_known_configs
from caughtup.models.learning.learned import Learned, LearningResult, learn
from caughtup.models.learning.provenance import chosen
from caughtup.models.learning.told import possible_hypotheses
from caughtup.models.parameters import STRATEGY, ApplicationParameters
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPosition


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The inputs of a decision besides the generation.

    It is a copy of parts of the state, which events change while another thread decides.

    - ``learned``: the configs learned from earlier generations, and from this one if ``is_learned``.
    - ``placed``: the subtopology of each changelog, from positions of copies.
    - ``ends``, ``commits``: as of now, of the topics that the generation may depend on.
    - ``leader_states``: what the application's leaders published; ``published``: the application's
      recommendations; both in order.
    - ``caught_up``: the copies that the last decision knew to be caught up; ``positions``: those
      reported since then.
    - ``replicas``: the racks of partitions' replicas, None if no leader decides by them.
    - ``worthwhile_at_ms``: when the next probing rebalance would promote a copy.
    - ``rates``: see ``CopyWatch.rates``.
    - ``listed``: bounds of end offsets that were listed while the group rebalanced.
    """

    parameters: ApplicationParameters
    learned: Learned = field(default_factory=Learned)
    is_learned: bool = False
    placed: Mapping[str, int] = field(default_factory=dict)
    ends: EndOffsetTable = field(default_factory=EndOffsetTable)
    commits: Mapping[TopicPartition, CommitHistory] = field(default_factory=dict)
    leader_states: tuple[ApplicationState, ...] = ()
    published: tuple[RecommendationRecord, ...] = ()
    caught_up: CaughtUpCopies = NONE_CAUGHT_UP
    positions: Mapping[CopyKey, TaskPosition] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, Sequence[str | None]] | None = None
    worthwhile_at_ms: int | None = None
    rates: str | None = None
    listed: Mapping[TopicPartition, ListedBounds] = field(default_factory=dict)


def decide_if_due(
    cluster: str, life: GenerationLife, known: DecisionContext, now_ms: int
) -> GenerationLife:
    """Return the generation in its next state: waiting, decided, or decided again.

    A decided one is returned unchanged unless copies have caught up since. The function is pure, so
    any thread may call it. A generation is decided without its leader's state after
    ``LEADER_STATE_WAIT_MS``, and without missing end offsets or racks after
    ``END_OFFSETS_WAIT_MS``. If no leader of the application ever published, the
    generation waits only where a follower decides, or where no configs of Kafka's assignors explain
    the decision.
    """
    if life.decision is not None:
        return _revised(cluster, life, life.decision, known, now_ms)
    generation = life.generation
    if life.published is not None:
        with suppress(CaughtupError):  # not readable by this release: decide again
            return life.to(State.PUBLISHED, decision=read_back(generation, life.published))
    waited_ms = now_ms - life.seen_ms
    if waited_ms < 0:  # the clock was set back: assume that it has waited long enough
        waited_ms = END_OFFSETS_WAIT_MS
    may_publish = waited_ms < LEADER_STATE_WAIT_MS
    state = find_state(generation, known.leader_states)
    if state is None and known.leader_states and may_publish:
        return _waiting(life, State.AWAITS_LEADER, known)
    inputs, lacks_racks = _gathered(life, known)
    if state is not None:
        decided = _decided_by_follower(cluster, generation, inputs, state, known, now_ms)
        return life.to(State.DECIDED, decision=decided)
    awaits = lacks_racks or _awaits_end_offsets(generation, inputs)
    if awaits and waited_ms < END_OFFSETS_WAIT_MS:
        unseen = _unseen_changelogs(generation, inputs)
        is_open = inputs.tentative or not unseen or lacks_racks
        return _waiting(life, State.AWAITS_ENDS, known, unseen, is_open=is_open)
    decided, is_explained = _decided_by_leader(cluster, life, inputs, known, now_ms)
    if may_publish and (not is_explained or generation.follows):
        return _waiting(life, State.AWAITS_LEADER, known)
    return life.to(State.DECIDED, decision=decided)


def _waiting(
    life: GenerationLife,
    state: State,
    known: DecisionContext,
    ends: tuple[TopicPartition, ...] = (),
    *,
    is_open: bool = False,
) -> GenerationLife:
    newest = known.leader_states[-1] if known.leader_states else None
    return life.to(state, leader_state=newest, ends=ends, is_open=is_open)


def _gathered(life: GenerationLife, known: DecisionContext) -> tuple[GenerationInputs, bool]:
    """Return the gathered inputs, and whether racks are needed that aren't known."""
    generation, parameters = life.generation, known.parameters
    inputs = gather_inputs(
        generation,
        parameters,
        known.ends,
        known.commits,
        life.seen_ms,
        known.placed,
        known.listed,
    )
    inputs = replace(inputs, replicas=known.replicas)
    uses_racks = generation.is_racked and parameters.strategy != "none"
    if not uses_racks or known.replicas is not None:
        return inputs, False
    doubt = (
        f"{STRATEGY}: all clients have racks, and caughtup has not looked up the racks of replicas"
    )
    return replace(inputs, unknown=(*inputs.unknown, doubt)), True


def _awaits_end_offsets(generation: StreamsGeneration, inputs: GenerationInputs) -> bool:
    """Return whether changelogs, or end offsets of some, are unknown yet."""
    if inputs.tentative or any(bound is None for bound in inputs.ends.values()):
        return True
    has_state = any(client.offset_sums for client in generation.clients.values())
    return has_state and not inputs.ends


def _unseen_changelogs(
    generation: StreamsGeneration, inputs: GenerationInputs
) -> tuple[TopicPartition, ...]:
    return tuple(
        partition
        for task, bound in inputs.ends.items()
        if bound is None
        for partition in inputs.scenario.tasks[task].changelogs
        if partition.topic not in generation.source_topics
    )


def _decided_by_follower(
    cluster: str,
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    state: ApplicationState,
    known: DecisionContext,
    now_ms: int,
) -> DecidedGeneration:
    """Decide by the inputs that the application's leader published."""
    inputs = leader_inputs(generation, state, inputs)
    wanted = state.recommendations()
    published = [
        read_published(one, generation.group)
        for one in known.published
        if one.decision_id in wanted
    ]
    exact = recompute_follower(generation, inputs, state, published)
    seen = _next_rebalance(generation, inputs)
    recommended = _recommended(cluster, generation, seen, exact, known, now_ms)
    return _decided(generation, inputs, exact, recommended)


def _decided_by_leader(
    cluster: str,
    life: GenerationLife,
    inputs: GenerationInputs,
    known: DecisionContext,
    now_ms: int,
) -> tuple[DecidedGeneration, bool]:
    """Decide by gathered inputs; also return whether configs of an assignor explain the leader."""
    generation = life.generation
    after, verdict = learn(known.learned, generation, inputs, life.seen_ms)
    learned = None if known.is_learned else after
    inputs = with_known_configs(inputs, generation, learned or known.learned)
    exact = _exact(generation, after, verdict)
    follows = generation.follows or bool(known.leader_states)
    seen = _next_rebalance(generation, inputs) if follows else inputs
    recommended = _recommended(cluster, generation, seen, exact, known, now_ms)
    decided = _decided(generation, inputs, exact, recommended)
    return replace(decided, learned=learned), not verdict.unexplained


def _revised(
    cluster: str,
    life: GenerationLife,
    decided: DecidedGeneration,
    known: DecisionContext,
    now_ms: int,
) -> GenerationLife:
    """Decide again if copies have caught up since the last decision."""
    scenario = project(decided.generation, decided.inputs.scenario, known.positions)
    if scenario is None or caught_up_copies(scenario).are_among(known.caught_up):
        return life
    inputs = replace(decided.inputs, scenario=scenario, projected=True)
    recommended = _recommended(cluster, decided.generation, inputs, decided.exact, known, now_ms)
    if _has_same_effect(recommended, decided.recommendation):
        recommended = decided.recommendation
    revised = replace(
        decided,
        inputs=inputs,
        recommendation=recommended,
        caught_up=caught_up_copies(scenario),
        learned=None,
    )
    return life.to(State.REVISED, decision=revised)


def _recommended(
    cluster: str,
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    known: DecisionContext,
    now_ms: int,
) -> RecommendationRecord | None:
    return recommendation(
        cluster, generation, inputs, exact, now_ms, known.worthwhile_at_ms, known.rates
    )


def _next_rebalance(generation: StreamsGeneration, inputs: GenerationInputs) -> GenerationInputs:
    """Return the inputs of a follower's next rebalance, with the copies that this one began.

    Otherwise it could choose other copies, and a follower would drop these for them.
    """
    scenario = project(generation, inputs.scenario, {})
    return inputs if scenario is None else replace(inputs, scenario=scenario, projected=True)


def _exact(generation: StreamsGeneration, learned: Learned, verdict: LearningResult) -> ExactResult:
    """Return the result of comparing with a leader's decision, with the likeliest assignor."""
    if generation.follows:
        assignor = FOLLOWER
    else:
        hypotheses = learned.hypotheses or possible_hypotheses(learned.told, ())
        assignor = CLASSES[chosen(hypotheses).algorithm.assignor]
    witness = None if verdict.witness is None else verdict.witness.record()
    if verdict.witness is not None:
        assignor = CLASSES[verdict.witness.config.algorithm.assignor]
    leader = compared(verdict.result, verdict.why, assignor, witness=witness)
    return ExactResult(leader, verdict.decision)


def read_back(generation: StreamsGeneration, published: RecommendationRecord) -> DecidedGeneration:
    """Return a generation's decision that was published before a restart.

    Raises CaughtupError if it can't be decided again.
    """
    inputs, exact = recorded_inputs(published.inputs), ExactResult(published.leader, None)
    # A follower's decision isn't in the record, nor does a projected or incomplete scenario give
    # the leader's.
    if exact.leader.assignor == ASSIGNOR and not inputs.projected and not published.left_out:
        decision = decide(replace(inputs.scenario.expanded(), assignor=KAFKAS))
        if exact.leader.result != "match" or _is_assigned(decision, generation):
            exact = exact._replace(decision=decision)
    return _decided(generation, inputs, exact, published)


def _is_assigned(decision: Decision, generation: StreamsGeneration) -> bool:
    """Return whether a generation's processes have the tasks of a decision.

    They may not if it was made with another ``max.warmup.replicas`` than the leader's.
    """
    owned = {task for one in generation.members() for task in generation.tasks_of(one.owned)}
    return not any(
        process_differs(client, decision.clients[process], owned)
        for process, client in generation.clients.items()
    )


def _decided(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    recommended: RecommendationRecord | None,
) -> DecidedGeneration:
    """Return a decided generation, with everything that follows from its decision."""
    if exact.decision is not None:
        exact = exact._replace(decision=exact.decision.explained())
    leader_movements = None
    if exact.decision is not None and exact.plans:
        leader_movements = planned_movements(exact.decision.movements)
    trusted = exact.decision if exact.leader.result == "match" else None
    scenario = inputs.scenario
    if not inputs.projected:
        scenario = project(generation, scenario, {}) or scenario
    return DecidedGeneration(
        generation,
        inputs,
        exact,
        recommended,
        leader_movements,
        assigned_copies(generation, inputs, trusted),
        caught_up_copies(scenario),
    )


def _has_same_effect(now: RecommendationRecord | None, before: RecommendationRecord | None) -> bool:
    """Return whether following either recommendation gives the same assignment and rebalances."""
    if now is None or before is None:
        return True
    return now.assignment == before.assignment and now.probing_rebalance == before.probing_rebalance


def may_depend_on(
    generation: StreamsGeneration, parameters: ApplicationParameters
) -> Callable[[str], bool]:
    """Return a test for the topics that a generation's tasks may read or restore from."""
    sources, prefix = generation.source_topics, f"{generation.group}-"
    given = frozenset(chain.from_iterable((parameters.changelogs or {}).values()))
    return lambda topic: topic in sources or topic in given or topic.startswith(prefix)
