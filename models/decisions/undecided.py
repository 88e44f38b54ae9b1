"""A generation that may be due, with a copy of all that it may have to be decided from.

Events go on changing the state while another thread decides, which therefore reads nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from caughtup.models.decisions.caught_up_copies import (
    NONE_CAUGHT_UP,
    CaughtUpCopies,
    caught_up_copies,
)
from caughtup.models.decisions.generation import (
    DecidedGeneration,
    DueGeneration,
    decide_generation,
    read_back,
)
from caughtup.models.decisions.inputs.application_state import ApplicationState, find_state
from caughtup.models.decisions.inputs.gathering import GenerationInputs, gather_inputs
from caughtup.models.decisions.inputs.leader import leader_inputs
from caughtup.models.decisions.projection import project
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory, EndOffsetTable
from caughtup.models.ids import CopyKey, TopicPartition
from caughtup.models.learning.learned import Learned
from caughtup.models.parameters import STRATEGY, ApplicationParameters
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPosition

#: How long a decision waits for end offsets listed after the rebalance, in ms.
END_OFFSETS_WAIT_MS = 15_000
#: How long a decision waits for what the leader publishes of the rebalance, in ms.
LEADER_STATE_WAIT_MS = 5_000


@dataclass(frozen=True, slots=True)
class UndecidedGeneration:
    """A generation, read at ``seen_ms``, or one whose decision may be made again.

    ``ends`` and ``commits`` are those that may matter to it, as they are now. ``leader_states``:
    what the application's leaders published of rebalances, and ``published`` what was recommended,
    both in their order. ``recommendation`` was published of it before a restart. ``revises`` is its
    decision if there is one, made knowing the copies in ``caught_up``; ``positions`` are what
    processes reported. ``learned`` is what earlier generations told of the configs, or this one as
    well if it ``is_learned`` already, and ``placed`` their changelogs by what copies had.
    ``replicas`` are the racks of partitions' replicas, None
    where no leader decides by them. The others are as for ``DueGeneration``.
    """

    generation: StreamsGeneration
    seen_ms: int
    parameters: ApplicationParameters
    learned: Learned = field(default_factory=Learned)
    is_learned: bool = False
    placed: Mapping[str, int] = field(default_factory=dict)
    ends: EndOffsetTable = field(default_factory=EndOffsetTable)
    commits: Mapping[TopicPartition, CommitHistory] = field(default_factory=dict)
    leader_states: tuple[ApplicationState, ...] = ()
    published: tuple[RecommendationRecord, ...] = ()
    recommendation: RecommendationRecord | None = None
    revises: DecidedGeneration | None = None
    caught_up: CaughtUpCopies = NONE_CAUGHT_UP
    positions: Mapping[CopyKey, TaskPosition] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, Sequence[str | None]] | None = None
    worthwhile_at_ms: int | None = None
    rates: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingGeneration:
    """A generation that isn't due before a moment (ms), unless what it waits for comes.

    That is what its leader publishes, be it the first since ``leader_state``; and end offsets of
    all of ``ends``, listed since ``seen_ms``, if any are named. ``is_open``: nobody knows which
    ends.
    """

    generation: StreamsGeneration
    seen_ms: int
    until_ms: int
    leader_state: ApplicationState | None
    ends: tuple[TopicPartition, ...] = ()
    is_open: bool = False

    def is_over(
        self, ends: EndOffsetTable, states: Sequence[ApplicationState], now_ms: int
    ) -> bool:
        """Return whether it is worth it to ask again whether the generation is due."""
        return (
            self.is_open
            or not self.seen_ms <= now_ms < self.until_ms  # the clock may have been set back
            or (bool(states) and states[-1] is not self.leader_state)
            or (bool(self.ends) and all(map(self._was_seen, map(ends.history, self.ends))))
        )

    def _was_seen(self, history: EndOffsetHistory | None) -> bool:
        return history is not None and history.last_ms >= self.seen_ms


def decide_if_due(
    cluster: str, undecided: UndecidedGeneration, now_ms: int
) -> DecidedGeneration | WaitingGeneration | None:
    """Decide a generation if it is due; None if there is nothing to decide again.

    Pure: any thread may do it.
    """
    if undecided.recommendation is not None:
        with suppress(CaughtupError):  # somebody else's: decide for ourselves
            return read_back(undecided.generation, undecided.recommendation)
    due = _revision(undecided) if undecided.revises else _due(undecided, now_ms)
    if not isinstance(due, DueGeneration):
        return due
    due = replace(
        due,
        learned=undecided.learned,
        is_learned=undecided.is_learned,
        worthwhile_at_ms=undecided.worthwhile_at_ms,
        rates=undecided.rates,
    )
    decided = decide_generation(cluster, due, now_ms)
    return _waiting(undecided, LEADER_STATE_WAIT_MS) if decided.premature else decided


def _due(undecided: UndecidedGeneration, now_ms: int) -> DueGeneration | WaitingGeneration:
    """Return a generation once all that it was decided from is there.

    What an application's leaders publish, but not within ``LEADER_STATE_WAIT_MS``, and end offsets
    or racks of replicas that don't come within ``END_OFFSETS_WAIT_MS``, are gone without. One that
    never published anything is waited for only if its leader didn't decide as Kafka's assignor
    does.
    """
    generation, waited_ms = undecided.generation, now_ms - undecided.seen_ms
    if waited_ms < 0:  # the clock was set back, by which nobody can tell: it's enough
        waited_ms = END_OFFSETS_WAIT_MS
    state = find_state(generation, undecided.leader_states)
    if state is None and undecided.leader_states and waited_ms < LEADER_STATE_WAIT_MS:
        return _waiting(undecided, LEADER_STATE_WAIT_MS)
    inputs = gather_inputs(
        generation,
        undecided.parameters,
        undecided.ends,
        undecided.commits,
        undecided.seen_ms,
        undecided.placed,
    )
    inputs = replace(inputs, replicas=undecided.replicas)
    goes_by_racks = generation.is_racked and undecided.parameters.strategy != "none"
    lacks_racks = goes_by_racks and undecided.replicas is None
    if lacks_racks:
        doubt = f"{STRATEGY}: all clients have racks, and nobody looked up those of replicas"
        inputs = replace(inputs, unknown=(*inputs.unknown, doubt))
    if state is not None:
        inputs = leader_inputs(generation, state, inputs)
        return DueGeneration(
            generation,
            inputs,
            undecided.seen_ms,
            leader_state=state,
            published=undecided.published,
        )
    awaits = lacks_racks or _awaits_end_offsets(generation, inputs)
    if awaits and waited_ms < END_OFFSETS_WAIT_MS:
        unseen = tuple(
            partition
            for task, bound in inputs.ends.items()
            if bound is None
            for partition in inputs.scenario.tasks[task].changelogs
            if partition.topic not in generation.source_topics
        )
        is_open = inputs.tentative or not unseen or lacks_racks
        return replace(_waiting(undecided, END_OFFSETS_WAIT_MS), ends=unseen, is_open=is_open)
    return DueGeneration(
        generation,
        inputs,
        undecided.seen_ms,
        leader_may_publish=waited_ms < LEADER_STATE_WAIT_MS,
        has_followed=bool(undecided.leader_states),
    )


def _waiting(undecided: UndecidedGeneration, wait_ms: int) -> WaitingGeneration:
    newest = undecided.leader_states[-1] if undecided.leader_states else None
    until_ms = undecided.seen_ms + wait_ms
    return WaitingGeneration(undecided.generation, undecided.seen_ms, until_ms, newest)


def _revision(undecided: UndecidedGeneration) -> DueGeneration | None:
    """Return the newest decision to be made again where copies have caught up since, else None."""
    decided = undecided.revises
    if decided is None:
        return None
    scenario = project(decided.generation, decided.inputs.scenario, undecided.positions)
    if scenario is None or caught_up_copies(scenario).are_among(undecided.caught_up):
        return None
    inputs = replace(decided.inputs, scenario=scenario, projected=True)
    return DueGeneration(decided.generation, inputs, undecided.seen_ms, revises=decided)


def _awaits_end_offsets(generation: StreamsGeneration, inputs: GenerationInputs) -> bool:
    """Return whether end offsets of a changelog, or the changelogs themselves, are yet unseen."""
    if inputs.tentative or any(bound is None for bound in inputs.ends.values()):
        return True
    has_state = any(client.offset_sums for client in generation.clients.values())
    return has_state and not inputs.ends


def may_depend_on(
    generation: StreamsGeneration, parameters: ApplicationParameters
) -> Callable[[str], bool]:
    """Return a test for the topics that a generation's tasks may read or restore from."""
    sources, prefix = generation.source_topics, f"{generation.group}-"
    given = frozenset(chain.from_iterable((parameters.changelogs or {}).values()))
    return lambda topic: topic in sources or topic in given or topic.startswith(prefix)
