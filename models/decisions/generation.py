"""One generation decided: what the leader did, what is recommended instead, and the record of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.caught_up_copies import CaughtUpCopies, caught_up_copies
from caughtup.models.decisions.exact.follower import read_published, recompute_follower
from caughtup.models.decisions.exact.generation import (
    ASSIGNOR,
    CLASSES,
    FOLLOWER,
    KAFKAS,
    ExactResult,
)
from caughtup.models.decisions.exact.members import differs_as_a_whole
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.projection import project
from caughtup.models.decisions.recommendation import (
    PlannedMovement,
    Recommendation,
    planned_movements,
    recommendation,
)
from caughtup.models.decisions.recommendation_fields import recommendation_fields
from caughtup.models.decisions.task_table import TaskCopy, given_copies
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.known_inputs import with_known_configs
from caughtup.models.learning.learned import Learned, LearningResult, learn
from caughtup.models.learning.provenance import chosen
from caughtup.models.learning.told import possible_hypotheses


@dataclass(frozen=True, slots=True)
class DueGeneration:
    """A generation whose decision is due, with all that it is to be decided from.

    ``learned`` is what earlier generations told of its configs, or this one as well if it
    ``is_learned`` already; its record was read at ``seen_ms``.
    ``leader_state`` is what its leader published of the rebalance, if anything, and ``published``
    what was recommended before, in that order: a follower may have followed it. ``revises`` is the
    decision that there was, where copies have caught up since. ``worthwhile_at_ms``: from when on
    a probing rebalance is worth it, as far as the copies' pace tells, and ``rates`` where that is
    from (``CopyWatch.rates``). ``leader_may_publish``: its leader's state of the rebalance may yet
    come, and with it rules that aren't Kafka's. ``has_followed``: its leaders published states of
    other rebalances, so that it follows, though nothing of this one has come.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    seen_ms: int
    learned: Learned = field(default_factory=Learned)
    is_learned: bool = False
    leader_state: ApplicationState | None = None
    published: tuple[Recommendation, ...] = ()
    revises: DecidedGeneration | None = None
    worthwhile_at_ms: int | None = None
    rates: str | None = None
    leader_may_publish: bool = False
    has_followed: bool = False


@dataclass(frozen=True, slots=True)
class DecidedGeneration:
    """A generation with what it was decided from, how exact mode fared, and what is recommended.

    ``leader_movements`` are those that its leader planned, None where that isn't known, and
    ``copies`` what each process has, as the generation began. ``caught_up``: the copies that the
    decision was made knowing to be caught up. ``premature``: it isn't what Kafka's assignor
    decides, and may not be Kafka's assignor's. ``read_back``: it was published before a restart.
    ``learned`` is what is known of the configs since; None where nothing was to be learned.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    exact: ExactResult
    recommendation: Recommendation | None
    leader_movements: tuple[PlannedMovement, ...] | None
    copies: tuple[TaskCopy, ...]
    caught_up: CaughtUpCopies
    revises: DecidedGeneration | None = None
    premature: bool = False
    read_back: bool = False
    learned: Learned | None = None

    @property
    def movements(self) -> tuple[PlannedMovement, ...]:
        """The movements of the recommendation; none without one."""
        return self.recommendation.movements if self.recommendation else ()


def decide_generation(cluster: str, due: DueGeneration, now_ms: int) -> DecidedGeneration:
    """Decide a generation: pure, so that any thread may do it. ``now_ms`` is when it is decided."""
    generation, inputs = due.generation, due.inputs
    learned, explained = None, True
    if due.revises is not None:
        exact = due.revises.exact
    elif due.leader_state is not None:
        wanted = due.leader_state.recommendations()
        published = [
            read_published(recommendation_fields(one), generation.group)
            for one in due.published
            if one.decision_id in wanted
        ]
        exact = recompute_follower(generation, inputs, due.leader_state, published)
    else:
        after, verdict = learn(due.learned, generation, inputs, due.seen_ms)
        explained = not verdict.unexplained
        learned = None if due.is_learned else after
        inputs = with_known_configs(inputs, generation, learned or due.learned)
        exact = _exact(generation, after, verdict)
    seen = inputs
    follows = generation.follows or due.has_followed or due.leader_state is not None
    if due.revises is None and follows:
        seen = _next_rebalance(generation, inputs)
    recommended = recommendation(
        cluster, generation, seen, exact, now_ms, due.worthwhile_at_ms, due.rates
    )
    if due.revises is not None:
        if _says_the_same(recommended, due.revises.recommendation):
            recommended = due.revises.recommendation
        return replace(
            due.revises,
            inputs=inputs,
            recommendation=recommended,
            caught_up=caught_up_copies(inputs.scenario),
            revises=replace(due.revises, revises=None),
            read_back=False,
        )
    premature = due.leader_may_publish and (not explained or generation.follows)
    decided = _decided(generation, inputs, exact, recommended)
    return replace(decided, premature=premature, learned=learned)


def _next_rebalance(generation: StreamsGeneration, inputs: GenerationInputs) -> GenerationInputs:
    """Return what a follower's next rebalance will see: with the copies that this one began.

    Lags that grew since would choose others, for which a follower would drop those again.
    """
    scenario = project(generation, inputs.scenario, {})
    return inputs if scenario is None else replace(inputs, scenario=scenario, projected=True)


def _exact(generation: StreamsGeneration, learned: Learned, verdict: LearningResult) -> ExactResult:
    """Describe what was found of a generation, and of which assignor as far as that is known."""
    if generation.follows:
        assignor = FOLLOWER
    else:
        hypotheses = learned.hypotheses or possible_hypotheses(learned.told, ())
        assignor = CLASSES[chosen(hypotheses).algorithm.assignor]
    return ExactResult(verdict.result, verdict.why, verdict.decision, assignor)


def read_back(generation: StreamsGeneration, published: Recommendation) -> DecidedGeneration:
    """Return a generation's decision as it was published before a restart.

    Raises CaughtupError if it can't be decided again.
    """
    inputs, exact = published.inputs, published.leader
    # From a projected scenario, from one that isn't whole, and for a follower, nobody can tell
    # what the leader decided.
    if exact.assignor == ASSIGNOR and not inputs.projected and not published.left_out:
        decision = decide(replace(inputs.scenario.expanded(), assignor=KAFKAS))
        if exact.result != "match" or _is_assigned(decision, generation):
            exact = replace(exact, decision=decision)
    return replace(_decided(generation, inputs, exact, published), read_back=True)


def _is_assigned(decision: Decision, generation: StreamsGeneration) -> bool:
    """Return whether a decision is what its generation was given.

    One that was recommended from fewer warm-ups than the leader has may not be.
    """
    owned = {task for one in generation.members() for task in generation.tasks_of(one.owned)}
    return not any(
        differs_as_a_whole(client, decision.clients[process], owned)
        for process, client in generation.clients.items()
    )


def _decided(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    recommended: Recommendation | None,
) -> DecidedGeneration:
    """Put a decision together with all that follows from it for as long as it stands."""
    if exact.decision is not None:
        exact = replace(exact, decision=exact.decision.explained())
    leader_movements = None
    if exact.decision is not None and exact.plans:
        leader_movements = planned_movements(exact.decision.movements)
    trusted = exact.decision if exact.result == "match" else None
    scenario = inputs.scenario
    if not inputs.projected:
        scenario = project(generation, scenario, {}) or scenario
    return DecidedGeneration(
        generation,
        inputs,
        exact,
        recommended,
        leader_movements,
        given_copies(generation, inputs, trusted),
        caught_up_copies(scenario),
    )


def _says_the_same(now: Recommendation | None, before: Recommendation | None) -> bool:
    """Return whether whoever follows the one does what whoever follows the other does."""
    if now is None or before is None:
        return True
    return now.assignment == before.assignment and now.probing == before.probing
