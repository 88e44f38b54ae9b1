"""The states of a generation, their transitions, and what the generation waits for.

::

    read ──┬──▶ awaits leader ──┬──▶ decided ────┬──▶ revised ──┐
           │         ▲          │                │      ▲       │
           │         ▼          │                │      └───────┘
           ├──▶ awaits ends ────┤                │
           │                    │                │
           └────────────────────┴──▶ published ──┘

A generation that waits for nothing goes from ``read`` to ``decided`` at once; one that waits is
looked at again and again, and may stay in its state.

Every transition goes through ``GenerationLife.to``, which checks it. A generation may also end
undecided: once ``__consumer_offsets`` was read to its end, only the newest generation of an
application is decided, and one whose decision fails is dropped
(``Application.keep_newest_pending``, ``give_up``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from caughtup.models.decisions.exact.comparison import ExactResult
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.next_rebalance import CaughtUpCopies
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.learning.learned import Learned
from caughtup.models.records.recommendations import RecommendationRecord, RecommendedMovement


class State(StrEnum):
    """The state of a generation.

    ``READ``: its record was read from ``__consumer_offsets``. ``AWAITS_LEADER``: the application's
    leader may yet publish its inputs. ``AWAITS_ENDS``: end offsets listed after the rebalance, or
    racks of replicas, are missing. ``DECIDED``: decided by this process. ``PUBLISHED``: decided
    before a restart, and read back. ``REVISED``: decided again because copies have caught up.
    """

    READ = "read"
    AWAITS_LEADER = "awaits leader"
    AWAITS_ENDS = "awaits ends"
    DECIDED = "decided"
    PUBLISHED = "published"
    REVISED = "revised"


#: The states that may follow each state. A waiting generation may begin to wait for something else.
_UNDECIDED = frozenset(
    (State.AWAITS_LEADER, State.AWAITS_ENDS, State.DECIDED, State.PUBLISHED),
)
_AGAIN = frozenset((State.REVISED,))
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.READ: _UNDECIDED,
    State.AWAITS_LEADER: _UNDECIDED,
    State.AWAITS_ENDS: _UNDECIDED,
    State.DECIDED: _AGAIN,
    State.PUBLISHED: _AGAIN,
    State.REVISED: _AGAIN,
}
#: The longest wait in each state, in ms since the generation's record was read; after it the
#: generation is decided with what is known.
LEADER_STATE_WAIT_MS = 5_000
END_OFFSETS_WAIT_MS = 15_000
#: The longest wait for a listing of end offsets after its record, if its application's end offsets
#: are listed while it rebalances.
LISTING_WAIT_MS = 1_000
WAIT_MS: Mapping[State, int] = {
    State.AWAITS_LEADER: LEADER_STATE_WAIT_MS,
    State.AWAITS_ENDS: END_OFFSETS_WAIT_MS,
}


@dataclass(frozen=True, slots=True)
class DecidedGeneration:
    """A decided generation: its inputs, its leader's decision, and the recommendation.

    ``leader_movements`` are those that its leader planned, None if unknown; ``copies`` are those of
    each process when the generation began; ``caught_up`` are the copies that were known to be
    caught up. ``learned`` has the learned configs after it, None if it wasn't learned from.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    exact: ExactResult
    recommendation: RecommendationRecord | None
    leader_movements: Sequence[RecommendedMovement] | None
    copies: tuple[TaskCopy, ...]
    caught_up: CaughtUpCopies
    learned: Learned | None = None

    @property
    def movements(self) -> Sequence[RecommendedMovement]:
        """The movements of the recommendation; none without one."""
        return self.recommendation.movements if self.recommendation else ()


@dataclass(frozen=True, slots=True)
class GenerationLife:
    """A generation and its state; ``seen_ms``: when its record was read.

    ``offset`` is that of its record in ``__consumer_offsets``, None if unknown. ``published`` is the
    recommendation that was published for it before a restart, None if there is none. While it
    waits, ``leader_state`` is the newest one that the application's leaders had published when it
    began to wait, ``ends`` are the partitions whose end offsets it waits for, and ``is_open`` is
    true if it is not known which these are; then each round looks again.
    ``decision`` is set in the last three states.
    """

    generation: StreamsGeneration
    seen_ms: int
    state: State = State.READ
    published: RecommendationRecord | None = None
    leader_state: ApplicationState | None = None
    ends: tuple[TopicPartition, ...] = ()
    is_open: bool = False
    offset: int | None = None
    decision: DecidedGeneration | None = None

    def to(self, state: State, **changes: Any) -> GenerationLife:
        """Return the generation in its next state; raises ValueError if that may not follow."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"a generation that is {self.state} cannot be {state}")
        return replace(self, state=state, **changes)

    def waits(self, known: EndOffsetTable, states: Sequence[ApplicationState], now_ms: int) -> bool:
        """Return whether it still waits, as nothing that it waits for has arrived.

        ``known`` are the newest end offsets, ``states`` those that the application's leaders
        published.
        """
        if self.state not in WAIT_MS or self.published is not None or self.is_open:
            return False
        if not self.seen_ms <= now_ms < self.seen_ms + WAIT_MS[self.state]:
            return False  # it has waited long enough, or the clock was set back
        if states and states[-1] is not self.leader_state:
            return False
        return not self.ends or not all(map(self._was_seen, map(known.history, self.ends)))

    def _was_seen(self, history: EndOffsetHistory | None) -> bool:
        return history is not None and history.last_ms >= self.seen_ms
