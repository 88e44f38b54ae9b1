"""One Kafka Streams application as the service sees it, from generation to generation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.assignment.catch_up import is_caught_up
from caughtup.models.decisions.caught_up_copies import NONE_CAUGHT_UP, CaughtUpCopies
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.membership_change import MembershipChange, followed
from caughtup.models.decisions.undecided import UndecidedGeneration, WaitingGeneration
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, ProcessId
from caughtup.models.parameters import ApplicationParameters
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


class Pending(NamedTuple):
    """A generation to be decided, when it was read (ms), and what was published of it before."""

    generation: StreamsGeneration
    seen_ms: int
    recommendation: RecommendationRecord | None = None


@dataclass(slots=True)
class Application:
    """A Streams group: its newest generation, those not decided yet, and the last decided one.

    Generations can follow each other faster than end offsets are listed, and each is decided.
    ``published`` counts the recommendations that are on their topic. ``change`` is the last time
    that instances came or went, None where none did since the first generation that was decided.
    """

    newest: StreamsGeneration
    pending: deque[Pending] = field(default_factory=deque)
    decided: DecidedGeneration | None = None
    change: MembershipChange | None = None
    #: What the oldest pending generation waits for, as far as it was found to wait.
    waiting: WaitingGeneration | None = None
    #: Whether the decision has events of movements that nobody has asked for yet.
    movements_due: bool = False
    #: Copies that the newest decision was made knowing to be caught up.
    caught_up: CaughtUpCopies = NONE_CAUGHT_UP
    history: deque[PastGeneration] = field(default_factory=lambda: deque(maxlen=GENERATIONS_KEPT))
    exact_counts: Counter[str] = field(default_factory=Counter)
    movement_counts: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0
    published: int = 0

    def advance(self, generation: StreamsGeneration, seen_ms: int) -> None:
        """Add a new generation, read at ``seen_ms``."""
        self.newest = generation
        self.pending.append(Pending(generation, seen_ms))

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
            self.pending.append(newest._replace(recommendation=published))

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

    def revision(
        self, parameters: ApplicationParameters, positions: Mapping[CopyKey, TaskPosition]
    ) -> UndecidedGeneration | None:
        """Return the newest decision to be made again, where copies have caught up since."""
        decided = self.decided
        if decided is None or not self.has_newly_caught_up(positions):
            return None
        return UndecidedGeneration(
            decided.generation,
            decided.generation.as_of_ms,
            parameters,
            revises=decided,
            caught_up=self.caught_up,
            positions=dict(positions),
        )

    def awaits(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation is the next to be decided."""
        return bool(self.pending) and self.pending[0].generation is generation

    def settle(self, decided: DecidedGeneration) -> bool:
        """Settle a decision, and return whether its recommendation is to be published.

        It isn't if others took its place, if it was before, or if it says what the one before
        said.
        """
        if decided.revises is not None:
            if self.decided is None or decided.generation is not self.decided.generation:
                return False
            before, self.decided, self.movements_due = self.decided, decided, True
            self.caught_up = self.caught_up.with_others(decided.caught_up)
            return decided.recommendation is not before.recommendation
        if not self.awaits(decided.generation):
            return False
        self.pending.popleft()
        last = self.decided.generation if self.decided else None
        self.change = followed(self.change, last, decided.generation, decided.copies)
        self.decided, self.movements_due, self.caught_up = decided, True, decided.caught_up
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
        return decided.recommendation is not None and not decided.read_back

    def give_up(self, generation: StreamsGeneration | None = None) -> None:
        """Go without the decision of a generation, since it can't be made; none holds any longer.

        The generation is undetermined then. None is the oldest pending one.
        """
        if self.pending and (generation is None or self.pending[0].generation is generation):
            self.pending.popleft()
            self.rebalances += 1
            self.exact_counts["undetermined"] += 1
        self.decided, self.movements_due = None, False

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
