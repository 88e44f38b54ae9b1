"""One Kafka Streams application as the service sees it, from generation to generation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.assignment.catch_up import is_caught_up
from caughtup.models.decisions.caught_up_copies import NONE_CAUGHT_UP, CaughtUpCopies
from caughtup.models.decisions.life import DecidedGeneration, GenerationLife, State
from caughtup.models.decisions.membership_change import MembershipChange, followed
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, ProcessId
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPosition

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
    ``published`` counts the recommendations that are on their topic. ``change`` is the last time
    that instances came or went, None where none did since the first generation that was decided.
    """

    newest: StreamsGeneration
    pending: deque[GenerationLife] = field(default_factory=deque)
    #: The last generation that was decided.
    latest: GenerationLife | None = None
    change: MembershipChange | None = None
    #: Whether the decision has events of movements that nobody has asked for yet.
    movements_due: bool = False
    #: Copies that the newest decision was made knowing to be caught up.
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

    def advance(self, generation: StreamsGeneration, seen_ms: int) -> None:
        """Add a new generation, read at ``seen_ms``."""
        self.newest = generation
        self.pending.append(GenerationLife(generation, seen_ms))

    def keep_newest_pending(self) -> None:
        """Drop the pending generations but the newest: others took their place long ago."""
        while len(self.pending) > 1:
            self.pending.popleft()

    def restore(self, published: RecommendationRecord) -> None:
        """Spare the newest generation if it was decided before a restart, and those before it.

        ``published`` is the last that was then. Made for any other generation it says
        nothing: which one is the newest, only the log of groups tells. Those that it holds before
        its end are left when it was read.
        """
        if self._holds(published):
            newest = self.pending.pop()
            self.pending.clear()
            self.pending.append(replace(newest, published=published))

    def has_newly_caught_up(self, positions: Mapping[CopyKey, TaskPosition]) -> bool:
        """Return whether copies have caught up that weren't when the newest decision was made.

        ``positions`` are what the application's processes reported.
        """
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
        """Return the last decided generation where copies have caught up since; else None."""
        return self.latest if self.has_newly_caught_up(positions) else None

    def awaits(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation is the next to be decided."""
        return bool(self.pending) and self.pending[0].generation is generation

    def settle(self, life: GenerationLife) -> bool:
        """Take a generation in its next state; return whether its recommendation is to be published.

        It isn't while it waits, where nothing has changed or others took its place, if it was
        published before, or if it says what the one before said.
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
        if not self.awaits(life.generation):
            return False
        if decided is None:
            self.pending[0] = life
            return False
        self.pending.popleft()
        last = before.generation if before else None
        self.change = followed(self.change, last, decided.generation, decided.copies)
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
        """Go without the decision of a generation, since it can't be made; none holds any longer.

        The generation is undetermined then. None is the oldest pending one.
        """
        if self.pending and (generation is None or self.pending[0].generation is generation):
            self.pending.popleft()
            self.rebalances += 1
            self.exact_counts["undetermined"] += 1
        self.latest, self.movements_due = None, False

    def _holds(self, published: RecommendationRecord) -> bool:
        """Return whether a recommendation was made for the newest generation.

        Generation numbers start again when a group is deleted; its moment tells them apart.
        """
        newest = self.newest
        return (
            published.generation == newest.generation
            and published.as_of_ms == newest.as_of_ms
            and [*map(ProcessId.parse, published.process_ids)] == [*newest.clients]
        )
