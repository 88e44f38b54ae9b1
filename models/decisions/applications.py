"""Every Kafka Streams application whose leader assigns its tasks, and what is decided for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from caughtup.models.commits.table import CommitTable
from caughtup.models.decisions.application import Application
from caughtup.models.decisions.generation import DecisionContext, may_depend_on
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.last_by_group import LastByGroup
from caughtup.models.decisions.learned_configs import LearnedConfigs
from caughtup.models.decisions.life import GenerationLife
from caughtup.models.decisions.movements import MovementLog
from caughtup.models.faults import Faults, Isolation
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.learning.learned import Learned
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.movements import TaskMovementRecord
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.tasks.positions import TaskPositions


class Applications(Mapping[str, Application]):
    """The applications by group. ``apply_*`` take events, ``due`` and ``settle`` decide."""

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

    def __getitem__(self, group: str) -> Application:
        return self._known[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def parameters(self, group: str) -> ApplicationParameters:
        """Return what the settings say of an application, or nothing but Kafka's defaults."""
        return self._parameters.get(group) or ApplicationParameters()

    def learned_of(self, group: str) -> Learned:
        """Return what is known of an application's configs, by its settings and its leaders."""
        return self.learned.of(group, ToldConfigs.of(self.parameters(group)))

    def config(self, group: str, name: str) -> int:
        """Return the value of a config to go on with: as the newest decision has it."""
        application = self._known.get(group)
        decided = None if application is None else application.decided
        value = None if decided is None else decided.inputs.scenario.config.get(name)
        return value if isinstance(value, int) else self.parameters(group).value(name)

    def apply_published(self, group: str, published: RecommendationRecord | None) -> bool:
        """Keep a recommendation that was published before this process started; None withdraws.

        Returns False if there are those of too many groups to take another one.
        """
        if published is None:
            self._published.forget(group)
            return True
        return self._published.add(group, published)

    def newest_published(self) -> list[tuple[str, RecommendationRecord]]:
        """Return the newest recommendation of each group, by group, sorted."""
        return list(self._published.each_newest())

    def restore_published(self) -> None:
        """Spare every generation that the recommendations taken so far were made for."""
        for group, known in self._known.items():
            if known.pending and (published := self._published.newest(group)):
                known.restore(published)

    def apply_state(self, group: str, state: ApplicationState) -> bool:
        """Keep what an application's leader told of a rebalance.

        Of a group that isn't known only the last counts. Returns False if too many groups tell.
        """
        if group not in self._known:
            self._states.forget(group)
        return self._states.add(group, state)

    def groups_with_records(self) -> set[str]:
        """Name the groups that a recommendation was published for, or whose leaders told anything.

        Be it only by what they decided.
        """
        return self._published.groups() | self._states.groups() | self.learned.groups()

    def forget_records(self, groups: Iterable[str]) -> list[str]:
        """Forget what was told of groups that are gone; names those of which we had published."""
        withdrawn = []
        for group in groups:
            self._states.forget(group)
            if self._published.forget(group) | self.learned.forget(group):
                withdrawn.append(group)
        return withdrawn

    def apply_generation(
        self, group: str, generation: StreamsGeneration | None, seen_ms: int
    ) -> None:
        """Apply a classic group's generation; ``seen_ms`` is when it was read.

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
        if published := self._published.newest(group):
            known.restore(published)

    def forget(self, group: str) -> None:
        """Forget an application, but for what it told and what was published of it."""
        self._known.pop(group, None)

    def due(
        self,
        ends: EndOffsetTable,
        commits: CommitTable,
        positions: TaskPositions,
        now_ms: int,
    ) -> Iterator[tuple[GenerationLife, DecisionContext]]:
        """Yield every generation that may be due, each once the one before it is settled.

        With it comes all that it may have to be decided from. The caller may apply events and
        await others between two.
        """
        for group in sorted(self._known):
            last: StreamsGeneration | None = None
            # Looked up late, since it may be gone by then.
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
        """Return an application's next generation, if it may be due, and what decides it."""
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
        if life.waits(ends, states, now_ms):
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

    def settle(self, life: GenerationLife) -> RecommendationRecord | None:
        """Settle a generation in its next state, and return the recommendation to be published.

        None if there is none, if the generation waits, or is no longer to be decided.
        """
        group, decided = life.generation.group, life.decision
        application = self._known.get(group)
        if application is None:
            return None
        if decided and decided.learned is not None and application.awaits(life.generation):
            self.learned.keep(life.generation, decided.learned, decided.inputs.placed)
        if not application.settle(life) or decided is None:
            return None
        if decided.recommendation is not None:
            self.apply_published(group, decided.recommendation)
        return decided.recommendation

    def count_published(self, group: str) -> None:
        """Count a recommendation as published: it is on its topic."""
        if (application := self._known.get(group)) is not None:
            application.published += 1

    def movement_events(self, now_ms: int) -> Iterator[TaskMovementRecord]:
        """Yield what the newest decisions mean for movements, each time only what is new.

        Others may have their turn between two events. What isn't asked for comes the next time.
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

    def log_read_to_end(self) -> None:
        """Note that the log of groups was read to its end: only newest generations are decided."""
        for application in self._known.values():
            application.keep_newest_pending()

    def awaited(self) -> list[str]:
        """Name the applications with a generation that isn't decided yet, sorted."""
        return sorted(group for group, known in self._known.items() if known.pending)
