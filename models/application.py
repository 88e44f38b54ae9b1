"""One Kafka Streams application as the service sees it, from generation to generation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from caughtup.models.application_state import ApplicationState, find_state
from caughtup.models.assignors.catch_up import is_caught_up
from caughtup.models.commit_history import CommitHistory
from caughtup.models.deciding import DecidedGeneration, DueGeneration, Record
from caughtup.models.end_offsets import EndOffsetTable
from caughtup.models.groups import StreamsGeneration
from caughtup.models.ids import TopicPartition
from caughtup.models.inputs import GenerationInputs, gather_inputs
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.projection import (
    CaughtUpCopy,
    acceptable_recovery_lag,
    caught_up_copies,
    project,
)
from caughtup.models.recommendation import read_recommendation
from caughtup.models.task_positions import CopyKey, TaskPosition
from caughtup.models.told_inputs import told_inputs

#: How long a decision waits for end offsets listed after the rebalance, in ms.
PATIENCE_MS = 15_000
#: How long a decision waits for what the leader tells of the rebalance, in ms.
TELLING_MS = 5_000
#: Decided generations kept to be shown.
GENERATIONS_KEPT = 50


@dataclass(frozen=True, slots=True)
class PastGeneration:
    """A generation that was decided: when (ms), how exact mode fared, how many movements."""

    generation: int
    at_ms: int
    result: str
    movements: int


@dataclass(slots=True)
class Application:
    """A Streams group: its newest generation, those not decided yet, and the last decided one.

    Generations can follow each other faster than end offsets are listed, and each is decided.
    """

    newest: StreamsGeneration
    pending: deque[tuple[StreamsGeneration, int]] = field(default_factory=deque)
    decided: DecidedGeneration | None = None
    #: Whether what the decision means for movements hasn't been told yet.
    untold: bool = False
    #: Copies that the newest decision was made knowing to be caught up.
    _caught_up: frozenset[CaughtUpCopy] = frozenset()
    history: deque[PastGeneration] = field(default_factory=lambda: deque(maxlen=GENERATIONS_KEPT))
    exact_counts: Counter[str] = field(default_factory=Counter)
    movement_counts: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0
    published: int = 0

    def advance(self, generation: StreamsGeneration, seen_ms: int) -> None:
        """Take a new generation, read at ``seen_ms``."""
        self.newest = generation
        self.pending.append((generation, seen_ms))

    def leave_the_past(self) -> None:
        """Drop the pending generations but the newest: others took their place long ago."""
        while len(self.pending) > 1:
            self.pending.popleft()

    def due(
        self,
        parameters: ApplicationParameters,
        ends: EndOffsetTable,
        commits: Mapping[TopicPartition, CommitHistory],
        told: Sequence[ApplicationState],
        published: Sequence[Record],
        now_ms: int,
    ) -> DueGeneration | None:
        """Give the oldest pending generation once all that it was decided from is there, else None.

        ``commits`` are the application's own, ``told`` what its leaders told of rebalances, and
        ``published`` what was recommended, both in their order. What an application that tells
        doesn't tell within ``TELLING_MS``, and end offsets that don't come within ``PATIENCE_MS``,
        are gone without. One that never told anything is waited for only if its leader didn't
        decide as Kafka's assignor does.
        """
        if not self.pending:
            return None
        generation, seen_ms = self.pending[0]
        inputs = gather_inputs(generation, parameters, ends, commits, seen_ms)
        state = find_state(generation, told)
        if state is not None:
            inputs = told_inputs(generation, state, inputs)
            return DueGeneration(generation, inputs, state, tuple(published))
        # Less than nothing since the clock was set back, by which nobody can tell: it's enough.
        waited_ms = now_ms - seen_ms if now_ms >= seen_ms else PATIENCE_MS
        if told and waited_ms < TELLING_MS:
            return None
        if _awaits_end_offsets(generation, inputs) and waited_ms < PATIENCE_MS:
            return None
        return DueGeneration(generation, inputs, untold=waited_ms < TELLING_MS)

    def revision(self, positions: Mapping[CopyKey, TaskPosition]) -> DueGeneration | None:
        """Give the newest decision to be made again where copies have caught up since, else None.

        ``positions`` are what the application's processes reported.
        """
        decided = self.decided
        if self.pending or decided is None or decided.record is None or not positions:
            return None
        acceptable = acceptable_recovery_lag(decided.inputs.scenario)
        news = (
            position.at_ms >= decided.generation.as_of_ms
            and position.lag is not None
            and is_caught_up(position.lag, acceptable)
            and (copy.process, str(copy.task)) not in self._caught_up
            for copy, position in positions.items()
        )
        if not any(news):
            return None
        scenario = project(decided.generation, decided.inputs.scenario, positions)
        if scenario is None or caught_up_copies(scenario) <= self._caught_up:
            return None
        inputs = replace(decided.inputs, scenario=scenario, projected=True)
        return DueGeneration(decided.generation, inputs, revises=decided)

    def settle(self, decided: DecidedGeneration) -> bool:
        """Take a decision, and tell whether a record of it is to be published.

        It isn't if others took its place, or if it says what the one before said. A premature one
        is to be decided again.
        """
        if decided.revises is not None:
            if self.decided is None or decided.generation is not self.decided.generation:
                return False
            before, self.decided, self.untold = self.decided, decided, True
            self._caught_up |= caught_up_copies(decided.inputs.scenario)
            news = decided.record is not before.record
            self.published += news
            return news
        if not self.pending or self.pending[0][0] is not decided.generation or decided.premature:
            return False
        self.pending.popleft()
        self._settle(decided)
        self.published += decided.record is not None
        return decided.record is not None

    def give_up(self, generation: StreamsGeneration | None = None) -> None:
        """Go without the decision of a generation, since it can't be made; none holds any longer.

        The generation is undetermined then. None is the oldest pending one.
        """
        if self.pending and (generation is None or self.pending[0][0] is generation):
            self.pending.popleft()
            self.rebalances += 1
            self.exact_counts["undetermined"] += 1
        self.decided, self.untold = None, False

    def restore(self, record: Record) -> None:
        """Take up the newest generation's decision as it was published before a restart.

        Generations before it were decided before it. Raises CaughtupError when the record isn't
        one of ours.
        """
        inputs, exact = read_recommendation(record)
        self.pending.clear()
        self._settle(DecidedGeneration(self.newest, inputs, exact, record))

    def holds(self, record: Record) -> bool:
        """Tell whether a recommendation was made for the newest generation.

        Generation numbers start again when a group is deleted; its moment tells them apart.
        """
        newest = self.newest
        return (
            record.get("generation") == newest.generation
            and record.get("as_of_ms") == newest.as_of_ms
            and record.get("process_ids") == [str(process) for process in newest.clients]
        )

    def _settle(self, decided: DecidedGeneration) -> None:
        self.decided, self.untold = decided, True
        scenario = decided.inputs.scenario
        if not decided.inputs.projected:
            scenario = project(decided.generation, scenario, {}) or scenario
        self._caught_up = caught_up_copies(scenario)
        self.rebalances += 1
        self.exact_counts[decided.exact.result] += 1
        self.movement_counts.update(movement["kind"] for movement in decided.movements)
        self.history.append(
            PastGeneration(
                decided.generation.generation,
                decided.generation.as_of_ms,
                decided.exact.result,
                len(decided.movements),
            )
        )


def _awaits_end_offsets(generation: StreamsGeneration, inputs: GenerationInputs) -> bool:
    """Tell whether end offsets of a changelog, or the changelogs themselves, are yet unseen."""
    if inputs.tentative or any(bound is None for bound in inputs.ends.values()):
        return True
    has_state = any(client.offset_sums for client in generation.clients.values())
    return has_state and not inputs.ends
