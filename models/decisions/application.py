"""One Kafka Streams application: its generations and their decisions."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.assignment.client_state import is_caught_up
from caughtup.models.decisions.life import DecidedGeneration, GenerationLife, State
from caughtup.models.decisions.next_rebalance import NONE_CAUGHT_UP, CaughtUpCopies
from caughtup.models.decisions.rebalancing_cost import MembershipChange, add_generation
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, ProcessId
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPosition

#: The number of decided generations that are kept for display.
GENERATIONS_KEPT = 50


@dataclass(frozen=True, slots=True)
class PastGeneration:
    """A decided generation: its time (ms), the result of exact mode, and its number of movements."""

    generation: int
    at_ms: int
    result: str
    movements: int


@dataclass(slots=True)
class Application:
    """A Streams group: its newest generation, the undecided ones, and the last decided one.

    Every generation is decided, even if they follow each other faster than end offsets are listed.
    ``published`` is the number of recommendations written to their topic. ``change`` is the last
    membership change since the first decided generation, None without one.
    """

    newest: StreamsGeneration
    pending: deque[GenerationLife] = field(default_factory=deque)
    #: The last generation that was decided.
    latest: GenerationLife | None = None
    change: MembershipChange | None = None
    #: Whether the decision has events of movements that weren't yielded yet.
    movements_due: bool = False
    #: Copies that were known to be caught up when the newest decision was made.
    caught_up: CaughtUpCopies = NONE_CAUGHT_UP
    history: deque[PastGeneration] = field(default_factory=lambda: deque(maxlen=GENERATIONS_KEPT))
    exact_counts: Counter[str] = field(default_factory=Counter)
    movement_counts: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0
    published: int = 0

    @property
    def decided(self) -> DecidedGeneration | None:
        """The last decision."""
        return None if self.latest is None else self.latest.decision

    def advance(
        self, generation: StreamsGeneration, seen_ms: int, offset: int | None = None
    ) -> None:
        """Add a new generation, whose record was read at ``seen_ms``, at an offset."""
        self.newest = generation
        self.pending.append(GenerationLife(generation, seen_ms, offset=offset))

    def keep_newest_pending(self) -> None:
        """Drop all pending generations but the newest, as they are over."""
        while len(self.pending) > 1:
            self.pending.popleft()

    def restore(self, published: RecommendationRecord) -> None:
        """Give the newest generation the recommendation that it got before a restart.

        Those before it are dropped. ``published`` is the last recommendation from before the
        restart; if it was made for another generation, nothing changes.
        """
        if self._holds(published):
            newest = self.pending.pop()
            self.pending.clear()
            self.pending.append(replace(newest, published=published))

    def has_newly_caught_up(self, positions: Mapping[CopyKey, TaskPosition]) -> bool:
        """Return whether, by ``positions``, copies have caught up since the newest decision."""
        decided = self.decided
        if self.pending or decided is None or decided.recommendation is None or not positions:
            return False
        acceptable = decided.inputs.scenario.acceptable_recovery_lag
        return any(
            position.at_ms >= decided.generation.as_of_ms
            and position.lag is not None
            and is_caught_up(position.lag, acceptable)
            and not self.caught_up.has(copy)
            for copy, position in positions.items()
        )

    def revisable(self, positions: Mapping[CopyKey, TaskPosition]) -> GenerationLife | None:
        """Return the last decided generation if copies have caught up since; else None."""
        return self.latest if self.has_newly_caught_up(positions) else None

    def is_next(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation is the next to decide."""
        return bool(self.pending) and self.pending[0].generation is generation

    def settle(self, life: GenerationLife) -> bool:
        """Store a generation in its next state; return whether to publish its recommendation.

        Return False if the generation still waits, is unchanged, is no longer pending, was published
        before, or has the same recommendation as the last.
        """
        decided, before = life.decision, self.decided
        if life is self.latest:
            return False
        if life.state is State.REVISED:
            if decided is None or before is None or decided.generation is not before.generation:
                return False
            self.latest, self.movements_due = life, True
            self.caught_up = self.caught_up.with_others(decided.caught_up)
            return decided.recommendation is not before.recommendation
        if not self.is_next(life.generation):
            return False
        if decided is None:
            self.pending[0] = life
            return False
        self.pending.popleft()
        last = before.generation if before else None
        self.change = add_generation(self.change, last, decided.generation, decided.copies)
        self.latest, self.movements_due, self.caught_up = life, True, decided.caught_up
        self.rebalances += 1
        self.exact_counts[decided.exact.leader.result] += 1
        self.movement_counts.update(movement.kind for movement in decided.movements)
        generation = decided.generation
        self.history.append(
            PastGeneration(
                generation.generation,
                generation.as_of_ms,
                decided.exact.leader.result,
                len(decided.movements),
            )
        )
        return decided.recommendation is not None and life.state is State.DECIDED

    def give_up(self, generation: StreamsGeneration | None = None) -> None:
        """Drop a generation whose decision failed, and the last decision.

        It counts as undetermined. None is the oldest pending generation.
        """
        if self.pending and (generation is None or self.pending[0].generation is generation):
            self.pending.popleft()
            self.rebalances += 1
            self.exact_counts["undetermined"] += 1
        self.latest, self.movements_due = None, False

    def _holds(self, published: RecommendationRecord) -> bool:
        """Return whether a recommendation was made for the newest generation.

        Generation numbers start again after a group was deleted; ``as_of_ms`` distinguishes them.
        """
        newest = self.newest
        return (
            published.generation == newest.generation
            and published.as_of_ms == newest.as_of_ms
            and [*map(ProcessId.parse, published.process_ids)] == [*newest.clients]
        )
