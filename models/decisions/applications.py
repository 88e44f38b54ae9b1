"""Every Kafka Streams application whose leader assigns its tasks, and what is decided for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from caughtup.models.decisions.application import Application
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.movements import Event, MovementLog
from caughtup.models.decisions.recommendation import Recommendation
from caughtup.models.decisions.undecided import UndecidedGeneration, WaitingGeneration
from caughtup.models.faults.isolation import Faults, Isolation
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.histories.group_partitions import GroupPartitions
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.tasks.positions import TaskPositions

Kept = TypeVar("Kept")

#: What is kept of an application: what it told of its last rebalances, and what was published.
_KEPT = 4
#: Groups that anything of the kind is kept of: anybody may write of groups that there aren't.
MOST_GROUPS = 20_000


class Applications(Mapping[str, Application]):
    """The applications by group. ``apply_*`` take events, ``due`` and ``settle`` decide."""

    def __init__(
        self, parameters: Mapping[str, ApplicationParameters], faults: Faults | None = None
    ) -> None:
        self.movements = MovementLog()
        self._faults = faults or Faults()
        self._parameters = parameters
        self._known: dict[str, Application] = {}
        self._published: dict[str, deque[Recommendation]] = {}
        self._told: dict[str, deque[ApplicationState]] = {}

    def __getitem__(self, group: str) -> Application:
        return self._known[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def parameters(self, group: str) -> ApplicationParameters:
        """Give what the settings say of an application, or nothing but Kafka's defaults."""
        return self._parameters.get(group) or ApplicationParameters()

    def apply_published(self, group: str, published: Recommendation | None) -> bool:
        """Take a recommendation that was published before this process started; None withdraws.

        Returns False if there are those of too many groups to take another one.
        """
        if published is None:
            self._published.pop(group, None)
            return True
        return _keep(self._published, group, published)

    def newest_published(self) -> list[tuple[str, Recommendation]]:
        """Return the newest recommendation of each group, by group, sorted."""
        return [(group, known[-1]) for group, known in sorted(self._published.items())]

    def take_up_published(self) -> None:
        """Spare every generation that the recommendations taken so far were made for."""
        for group, known in self._known.items():
            if known.pending and (published := self._published.get(group)):
                known.take_up(published[-1])

    def apply_state(self, group: str, told: ApplicationState) -> bool:
        """Take what an application's leader told of a rebalance.

        Of a group that isn't known only the last counts. Returns False if too many groups tell.
        """
        if group not in self._known:
            self._told.pop(group, None)
        return _keep(self._told, group, told)

    def told_of(self) -> set[str]:
        """Name the groups that a recommendation was published for, or whose leaders told anything."""
        return self._published.keys() | self._told.keys()

    def forget_told(self, groups: Iterable[str]) -> list[str]:
        """Forget what was told of groups that are gone; names those with a recommendation."""
        published = []
        for group in groups:
            self._told.pop(group, None)
            if self._published.pop(group, None) is not None:
                published.append(group)
        return published

    def apply_generation(
        self, group: str, generation: StreamsGeneration | None, seen_ms: int
    ) -> None:
        """Take a classic group's generation; ``seen_ms`` is when it was read.

        None for a group that is deleted, or no longer Kafka Streams'.
        """
        known = self._known.get(group)
        if generation is None:
            self._known.pop(group, None)
            return
        if known is not None:
            generation = generation.with_sources(known.newest.source_topics)
        if known is None:
            known = self._known[group] = Application(generation)
        elif (
            generation.generation <= known.newest.generation
            and generation.as_of_ms <= known.newest.as_of_ms
        ):
            return  # known: the log is read again from its start after a lost connection
        known.advance(generation, seen_ms)
        if published := self._published.get(group):
            known.take_up(published[-1])

    def forget(self, group: str) -> None:
        """Forget an application, but for what it told and what was published of it."""
        self._known.pop(group, None)

    def due(
        self,
        ends: EndOffsetTable,
        commits: GroupPartitions,
        positions: TaskPositions,
        now_ms: int,
    ) -> Iterator[UndecidedGeneration]:
        """Give every generation that may be due, each once the one before it is settled.

        The caller may apply events and await others between two.
        """
        for group in sorted(self._known):
            last: StreamsGeneration | None = None
            # Looked up late, since it may be gone by then.
            while (application := self._known.get(group)) is not None:
                undecided: UndecidedGeneration | None = None
                with self.deciding(group, now_ms):
                    if not self._waits(group, application, ends, now_ms):
                        undecided = self._undecided(group, application, ends, commits, positions)
                if undecided is None or undecided.generation is last:
                    break
                yield undecided
                last = undecided.generation

    def _waits(
        self, group: str, application: Application, ends: EndOffsetTable, now_ms: int
    ) -> bool:
        """Tell whether an application's next generation can't be due yet."""
        waiting, pending = application.waiting, application.pending
        return (
            waiting is not None
            and bool(pending)
            and pending[0].generation is waiting.generation
            and not waiting.is_over(ends, self._told.get(group, ()), now_ms)
        )

    def _undecided(
        self,
        group: str,
        application: Application,
        ends: EndOffsetTable,
        commits: GroupPartitions,
        positions: TaskPositions,
    ) -> UndecidedGeneration | None:
        """Copy what another thread may need to decide an application's next generation."""
        parameters, reported = self.parameters(group), positions.of(group)
        if not application.pending:
            decided = application.decided
            if decided is None or not application.has_news(reported):
                return None
            return UndecidedGeneration(
                decided.generation,
                decided.generation.as_of_ms,
                parameters,
                revises=decided,
                caught_up=application.caught_up,
                positions=dict(reported),
            )
        pending = application.pending[0]
        sources, prefix = pending.generation.source_topics, f"{group}-"
        given = frozenset(chain.from_iterable((parameters.changelogs or {}).values()))
        return UndecidedGeneration(
            pending.generation,
            pending.seen_ms,
            parameters,
            ends.of_topics(
                lambda topic: topic in sources or topic in given or topic.startswith(prefix)
            ),
            {
                partition: history.copy()
                for partition, history in commits.of(group).items()
                if partition.topic in sources
            },
            tuple(self._told.get(group, ())),
            tuple(self._published.get(group, ())),
            pending.recommendation,
        )

    def deciding(
        self, group: str, now_ms: int, generation: StreamsGeneration | None = None
    ) -> Isolation:
        """Return what a generation is decided within: if that fails, it is gone without, and counted.

        None is the oldest that isn't decided.
        """

        def give_up(_: Exception) -> None:
            if (application := self._known.get(group)) is not None:
                application.give_up(generation)

        return self._faults.isolated("decision", group, now_ms, give_up)

    def settle(self, decided: DecidedGeneration | WaitingGeneration) -> Recommendation | None:
        """Take a decision, and return the recommendation that is to be published of it, if any.

        None as well if it is no longer to be decided, or waits.
        """
        group = decided.generation.group
        application = self._known.get(group)
        if application is None:
            return None
        if isinstance(decided, WaitingGeneration):
            application.waiting = decided
            return None
        if not application.settle(decided):
            return None
        if decided.recommendation is not None:
            self.apply_published(group, decided.recommendation)
        return decided.recommendation

    def count_published(self, group: str) -> None:
        """Count a recommendation as published: it is on its topic."""
        if (application := self._known.get(group)) is not None:
            application.published += 1

    def movement_events(self, now_ms: int) -> Iterator[Event]:
        """Give what the newest decisions mean for movements, each time only what is new.

        Others may have their turn between two events. What isn't asked for comes the next time.
        """
        yield from self.movements.close(self._known, now_ms)
        for group in sorted(group for group, known in self._known.items() if known.untold):
            with self._faults.isolated("movements", group, now_ms):
                yield from self._movement_events(group, now_ms)

    def _movement_events(self, group: str, now_ms: int) -> Iterator[Event]:
        application = self._known.get(group)
        if application is None or (decided := application.decided) is None:
            return
        try:
            yield from self.movements.advance(decided, now_ms)
        except Exception:
            application.untold = False  # it would fail again
            raise
        if application.decided is decided:
            application.untold = False

    def leave_the_past(self) -> None:
        """Take what was read so far as history: only the newest generations are still decided."""
        for application in self._known.values():
            application.leave_the_past()

    def awaited(self) -> list[str]:
        """Name the applications with a generation that isn't decided yet, sorted."""
        return sorted(group for group, known in self._known.items() if known.pending)


def _keep(kept: dict[str, deque[Kept]], group: str, value: Kept) -> bool:
    """Keep the last values of a group, unless that were too many groups."""
    known = kept.get(group)
    if known is None:
        if len(kept) >= MOST_GROUPS:
            return False
        known = kept[group] = deque(maxlen=_KEPT)
    known.append(value)
    return True
