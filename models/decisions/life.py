"""The life of a generation: its states, what may come next, and what it waits for.

::

    read ─────┬──▶ awaits leader ─┬──▶ decided ──┬──▶ revised ──┐
              ├──▶ awaits ends ───┘              │      ▲       │
              └──▶ published ────────────────────┘      └───────┘

Everything that changes a generation's state goes through ``GenerationLife.to``, which knows this
table. A life also ends without a decision: when the log of groups was read to its end, only the
newest generation of an application is decided, and one whose decision fails is given up
(``Application.keep_newest_pending``, ``give_up``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from caughtup.models.decisions.caught_up_copies import CaughtUpCopies
from caughtup.models.decisions.exact.generation import ExactResult
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offsets import EndOffsetHistory, EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.learning.learned import Learned
from caughtup.models.records.recommendations import RecommendationRecord, RecommendedMovement


class State(StrEnum):
    """Where a generation is in its life.

    ``READ``: its record was read from the log of groups. ``AWAITS_LEADER``: the application's
    leader may yet publish what it decided from. ``AWAITS_ENDS``: end offsets listed after the
    rebalance, or racks of replicas, are missing. ``DECIDED``: decided by this process.
    ``PUBLISHED``: decided before a restart, and read back. ``REVISED``: decided again, since copies
    have caught up.
    """

    READ = "read"
    AWAITS_LEADER = "awaits leader"
    AWAITS_ENDS = "awaits ends"
    DECIDED = "decided"
    PUBLISHED = "published"
    REVISED = "revised"


#: What may come after each state. One that waits may find that it waits for something else.
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
#: How long a generation waits, in ms since its record was read; then it is decided without.
LEADER_STATE_WAIT_MS = 5_000
END_OFFSETS_WAIT_MS = 15_000
WAIT_MS: Mapping[State, int] = {
    State.AWAITS_LEADER: LEADER_STATE_WAIT_MS,
    State.AWAITS_ENDS: END_OFFSETS_WAIT_MS,
}


@dataclass(frozen=True, slots=True)
class DecidedGeneration:
    """A generation's decision: its inputs, what its leader decided, and what is recommended.

    ``leader_movements`` are those that its leader planned, None where that isn't known, and
    ``copies`` what each process has, as the generation began. ``caught_up``: the copies that the
    decision knew to be caught up. ``learned`` is what is known of the configs since; None where
    there was nothing to learn.
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
    """A generation, and where it is in its life; ``seen_ms``: when its record was read.

    ``published``: its recommendation from before a restart. While it waits, ``leader_state`` is
    the newest that the application's leaders had published when it began to, ``ends`` are the
    partitions whose end offsets it waits for, and ``is_open`` says that it isn't known which.
    ``decision`` is there in the last three states.
    """

    generation: StreamsGeneration
    seen_ms: int
    state: State = State.READ
    published: RecommendationRecord | None = None
    leader_state: ApplicationState | None = None
    ends: tuple[TopicPartition, ...] = ()
    is_open: bool = False
    decision: DecidedGeneration | None = None

    def to(self, state: State, **changes: Any) -> GenerationLife:
        """Return the generation in its next state. Raises ValueError where that may not come."""
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"a generation that is {self.state} cannot be {state}")
        return replace(self, state=state, **changes)

    def waits(self, known: EndOffsetTable, states: Sequence[ApplicationState], now_ms: int) -> bool:
        """Return whether nothing has come of what it waits for: it can't be due yet.

        ``known`` are the newest end offsets, ``states`` what the application's leaders published.
        """
        if self.state not in WAIT_MS or self.published is not None or self.is_open:
            return False
        if not self.seen_ms <= now_ms < self.seen_ms + WAIT_MS[self.state]:
            return False  # the time is over, or the clock was set back
        if states and states[-1] is not self.leader_state:
            return False
        return not self.ends or not all(map(self._was_seen, map(known.history, self.ends)))

    def _was_seen(self, history: EndOffsetHistory | None) -> bool:
        return history is not None and history.last_ms >= self.seen_ms
