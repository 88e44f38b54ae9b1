"""One Kafka Streams application as the service sees it, from generation to generation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.commit_history import CommitHistory
from caughtup.models.deciding import DecidedGeneration, DueGeneration
from caughtup.models.end_offsets import EndOffsetTable
from caughtup.models.groups import StreamsGeneration
from caughtup.models.ids import TopicPartition
from caughtup.models.inputs import GenerationInputs, gather_inputs
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.recommendation import read_recommendation, recommend

#: How long a decision waits for end offsets listed after the rebalance, in ms.
PATIENCE_MS = 15_000
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
        now_ms: int,
    ) -> DueGeneration | None:
        """Give the oldest pending generation once its end offsets are there, else None.

        ``commits`` are the application's own. A generation whose end offsets don't come within
        ``PATIENCE_MS`` is decided without them.
        """
        if not self.pending:
            return None
        generation, seen_ms = self.pending[0]
        inputs = gather_inputs(generation, parameters, ends, commits, seen_ms)
        if _awaits_end_offsets(generation, inputs) and now_ms - seen_ms < PATIENCE_MS:
            return None
        return DueGeneration(generation, inputs)

    def settle(self, decided: DecidedGeneration) -> bool:
        """Take the decision of a generation, and tell whether it was still to be decided."""
        if not self.pending or self.pending[0][0] is not decided.generation:
            return False
        self.pending.popleft()
        self._settle(decided)
        if decided.record is not None:
            self.published += 1
        return True

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take up the newest generation's decision as it was published before a restart.

        Generations before it were decided before it. Raises CaughtupError when the record isn't
        one of ours.
        """
        inputs, exact = read_recommendation(record)
        self.pending.clear()
        self._settle(DecidedGeneration(self.newest, inputs, exact, recommend(inputs), record))

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a recommendation was made for the newest generation.

        Generation numbers start again when a group is deleted; its moment tells them apart.
        """
        newest = self.newest
        return (
            record.get("generation") == newest.generation
            and record.get("as_of_ms") == newest.as_of_ms
            and record.get("process_ids") == [str(process) for process in newest.clients]
        )

    def precedes(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a recommendation was made for a later generation than the newest."""
        number, moment = record.get("generation"), record.get("as_of_ms")
        if not isinstance(number, int) or not isinstance(moment, int):
            return False
        return self.newest.generation < number and self.newest.as_of_ms < moment

    def _settle(self, decided: DecidedGeneration) -> None:
        self.decided, self.untold = decided, True
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
