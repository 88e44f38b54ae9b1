"""The Kafka Streams applications whose leaders assign their tasks, and their decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from caughtup.models.commits.table import CommitTable
from caughtup.models.decisions.application import Application
from caughtup.models.decisions.deciding import DecisionContext, may_depend_on
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.learned_configs import MOST_GROUPS, LearnedConfigs
from caughtup.models.decisions.life import LISTING_WAIT_MS, GenerationLife
from caughtup.models.decisions.movements import MovementLog
from caughtup.models.faults import Faults, Isolation
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.rebalance_ends import ListedBounds, RebalanceEnds
from caughtup.models.ids import TopicPartition
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.movements import TaskMovementRecord
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPositions

Value = TypeVar("Value")

#: The values kept of a group: a follower may have followed an earlier recommendation than the last.
MOST_VALUES = 4


class LastByGroup(Generic[Value]):
    """The last values of each group, in order of arrival."""

    def __init__(self) -> None:
        self._values: dict[str, deque[Value]] = {}

    def add(self, group: str, value: Value) -> bool:
        """Add a group's value; return False if there are too many groups."""
        known = self._values.get(group)
        if known is None:
            if len(self._values) >= MOST_GROUPS:
                return False
            known = self._values[group] = deque(maxlen=MOST_VALUES)
        known.append(value)
        return True

    def of(self, group: str) -> tuple[Value, ...]:
        """Return a group's values, the oldest first."""
        return tuple(self._values.get(group, ()))

    def newest(self, group: str) -> Value | None:
        """Return a group's newest value, None if there is none."""
        known = self._values.get(group)
        return known[-1] if known else None

    def each_newest(self) -> Iterator[tuple[str, Value]]:
        """Yield each group with its newest value, sorted by group."""
        for group, known in sorted(self._values.items()):
            yield group, known[-1]

    def forget(self, group: str) -> bool:
        """Remove a group's values; return whether there were any."""
        return self._values.pop(group, None) is not None

    def groups(self) -> set[str]:
        """Return the groups that have values."""
        return set(self._values)


class Applications(Mapping[str, Application]):
    """The applications by group: ``apply_*`` apply events, ``due`` and ``settle`` decide."""

    def __init__(
        self, parameters: Mapping[str, ApplicationParameters], faults: Faults | None = None
    ) -> None:
        self.movements = MovementLog()
        self.learned = LearnedConfigs()
        self._faults = faults or Faults()
        self._parameters = parameters
        self._known: dict[str, Application] = {}
        self._published = LastByGroup[RecommendationRecord]()
        self._states = LastByGroup[ApplicationState]()
        #: Those of applications that rebalance or rebalanced lately.
        self.rebalance_ends: dict[str, RebalanceEnds] = {}

    def __getitem__(self, group: str) -> Application:
        return self._known[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def parameters(self, group: str) -> ApplicationParameters:
        """Return an application's parameters from the settings, else Kafka's defaults."""
        return self._parameters.get(group) or ApplicationParameters()

    def learned_of(self, group: str) -> Learned:
        """Return an application's configs as known from its settings and its leaders' decisions."""
        return self.learned.of(group, ToldConfigs.of(self.parameters(group)))

    def config(self, group: str, name: str) -> int:
        """Return a config's value in the newest decision, else in the settings."""
        application = self._known.get(group)
        decided = None if application is None else application.decided
        value = None if decided is None else decided.inputs.scenario.config.get(name)
        return value if isinstance(value, int) else self.parameters(group).value(name)

    def apply_published(self, group: str, published: RecommendationRecord | None) -> bool:
        """Store a recommendation that was published before this process started; None removes all.

        Return False if there are too many groups.
        """
        if published is None:
            self._published.forget(group)
            return True
        return self._published.add(group, published)

    def newest_published(self) -> list[tuple[str, RecommendationRecord]]:
        """Return each group with its newest recommendation, sorted by group."""
        return list(self._published.each_newest())

    def restore_published(self) -> None:
        """Give generations the stored recommendations that were made for them: none is decided again."""
        for group, known in self._known.items():
            if known.pending and (published := self._published.newest(group)):
                known.restore(published)

    def apply_state(self, group: str, state: ApplicationState) -> bool:
        """Store the state that an application's leader published of a rebalance.

        Only the last is kept of an unknown group. Return False if there are too many groups.
        """
        if group not in self._known:
            self._states.forget(group)
        return self._states.add(group, state)

    def groups_with_records(self) -> set[str]:
        """Return the groups with recommendations, leaders' states or learned configs."""
        return self._published.groups() | self._states.groups() | self.learned.groups()

    def forget_records(self, groups: Iterable[str]) -> list[str]:
        """Remove the records of deleted groups; return those of them that we had published."""
        withdrawn = []
        for group in groups:
            self._states.forget(group)
            if self._published.forget(group) | self.learned.forget(group):
                withdrawn.append(group)
        return withdrawn

    def apply_generation(
        self,
        group: str,
        generation: StreamsGeneration | None,
        seen_ms: int,
        offset: int | None = None,
    ) -> None:
        """Apply a classic group's generation, whose record was read at ``seen_ms``, at an offset.

        None means that the group is deleted, or no longer of Kafka Streams.
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
            return  # known: after a lost connection the log is read again from its start
        known.advance(generation, seen_ms, offset)
        if published := self._published.newest(group):
            known.restore(published)

    def forget(self, group: str) -> None:
        """Remove an application, but not its leaders' states and its recommendations."""
        self._known.pop(group, None)

    def due(
        self,
        ends: EndOffsetTable,
        commits: CommitTable,
        positions: TaskPositions,
        now_ms: int,
    ) -> Iterator[tuple[GenerationLife, DecisionContext]]:
        """Yield every generation that may be due, with the inputs of its decision.

        An application's next generation is yielded once the one before it is settled. The caller
        may apply events between two.
        """
        for group in sorted(self._known):
            last: StreamsGeneration | None = None
            # Looked up each time, because it may have been deleted.
            while (application := self._known.get(group)) is not None:
                found: tuple[GenerationLife, DecisionContext] | None = None
                with self.deciding(group, now_ms):
                    found = self._undecided(group, application, ends, commits, positions, now_ms)
                if found is None or found[0].generation is last:
                    break
                yield found
                last = found[0].generation

    def _undecided(
        self,
        group: str,
        application: Application,
        ends: EndOffsetTable,
        commits: CommitTable,
        positions: TaskPositions,
        now_ms: int,
    ) -> tuple[GenerationLife, DecisionContext] | None:
        """Return an application's next generation if it may be due, with its decision's inputs."""
        parameters, reported = self.parameters(group), positions.of(group)
        if not application.pending:
            latest = application.revisable(reported)
            if latest is None:
                return None
            caught_up = application.caught_up
            return latest, DecisionContext(
                parameters, caught_up=caught_up, positions=dict(reported)
            )
        life, states = application.pending[0], self._states.of(group)
        if life.waits(ends, states, now_ms) or self._awaits_listing(group, life, now_ms):
            return None
        generation = life.generation
        return life, DecisionContext(
            parameters,
            self.learned.of(group, ToldConfigs.of(parameters)),
            self.learned.holds(generation),
            self.learned.placed(group),
            ends.of_topics(may_depend_on(generation, parameters)),
            {
                partition: history.copy()
                for partition, history in commits.of(group).items()
                if partition.topic in generation.source_topics
            },
            states,
            self._published.of(group),
            listed=self._listed(group, life),
        )

    def _awaits_listing(self, group: str, life: GenerationLife, now_ms: int) -> bool:
        """Return whether a generation waits for end offsets listed after its rebalance."""
        found = self.rebalance_ends.get(group)
        if found is None or life.offset is None or life.published is not None:
            return False
        return found.awaits(life.offset) and 0 <= now_ms - life.seen_ms < LISTING_WAIT_MS

    def _listed(self, group: str, life: GenerationLife) -> Mapping[TopicPartition, ListedBounds]:
        found = self.rebalance_ends.get(group)
        return {} if found is None or life.offset is None else found.bounds(life.offset)

    def deciding(
        self, group: str, now_ms: int, generation: StreamsGeneration | None = None
    ) -> Isolation:
        """Return the context in which to decide: a failure is counted and drops the generation.

        None is the oldest undecided generation.
        """

        def give_up(_: Exception) -> None:
            if (application := self._known.get(group)) is not None:
                application.give_up(generation)

        return self._faults.isolated("decision", group, now_ms, give_up)

    def settle(self, life: GenerationLife) -> RecommendationRecord | None:
        """Store a generation in its next state; return the recommendation to publish, if any."""
        group, decided = life.generation.group, life.decision
        application = self._known.get(group)
        if application is None:
            return None
        if decided and decided.learned is not None and application.is_next(life.generation):
            self.learned.keep(life.generation, decided.learned, decided.inputs.placed)
        if not application.settle(life) or decided is None:
            return None
        if decided.recommendation is not None:
            self.apply_published(group, decided.recommendation)
        return decided.recommendation

    def count_published(self, group: str) -> None:
        """Count a recommendation as published on its topic."""
        if (application := self._known.get(group)) is not None:
            application.published += 1

    def movement_events(self, now_ms: int) -> Iterator[TaskMovementRecord]:
        """Yield the new events of movements by the newest decisions.

        The caller may do other work between two; events that it doesn't take are yielded next time.
        """
        yield from self.movements.close(self._known, now_ms)
        for group in sorted(group for group, known in self._known.items() if known.movements_due):
            with self._faults.isolated("movements", group, now_ms):
                yield from self._movement_events(group, now_ms)

    def _movement_events(self, group: str, now_ms: int) -> Iterator[TaskMovementRecord]:
        application = self._known.get(group)
        if application is None or (decided := application.decided) is None:
            return
        try:
            yield from self.movements.advance(decided, now_ms)
        except Exception:
            application.movements_due = False  # it would fail again
            raise
        if application.decided is decided:
            application.movements_due = False

    def log_read_to_end(self, of: Callable[[str], bool] = lambda _: True) -> None:
        """Keep only the newest pending generations, once ``__consumer_offsets`` was read to its end.

        ``of``: of these groups, whose partitions were read.
        """
        for group, application in self._known.items():
            if of(group):
                application.keep_newest_pending()

    def awaited(self) -> list[str]:
        """Return the applications with an undecided generation, sorted."""
        return sorted(group for group, known in self._known.items() if known.pending)
