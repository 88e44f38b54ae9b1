"""Holds what the service says against the truth, each second, and restarts it where it has ended."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from caughtup.demo.processes.children import ClosedOnExit
from tests.chaos import rules, sharing
from tests.chaos.application import NAME
from tests.chaos.groups import CANARIES, GROUPS, STEADY
from tests.chaos.history import Sample
from tests.chaos.rules import Around, Violation, Watched
from tests.chaos.said import COMMITTED, LAG, Figure, Said, ask
from tests.chaos.scene import Instance, Scene

_EVERY_SECONDS = 1.0
_PAGE_EVERY = 3
#: What can't be held against the truth by then never will be.
_PENDING_SECONDS = 90.0
_STARTS_SECONDS = 30.0
#: A process that answers nothing, or says that it is broken, is gone by then.
_GONE_SECONDS = 15.0
_DECIDED_SECONDS = 60.0
#: For so long what an event tells of a decision may be read later than the decision.
_EVENTS_SECONDS = 10.0
#: Reasons for which an instance ends rightly after it was cut off, suspended or without a coordinator.
_REPLACED = ("others have its partitions", "fenced: another producer", "whether a transaction of")
#: By so many seconds a canary may lag behind when all is right.
_FRESH_SECONDS = 4.0


class Judge(ClosedOnExit):
    """Asks and judges in a thread; ``report`` is told of each violation."""

    def __init__(self, scene: Scene, report: Callable[[Violation], None]) -> None:
        self.around = Around(calm_since=time.monotonic())
        self.judged = self.restarts = 0
        #: How many figures nobody could judge, by what they are of.
        self.unjudged: Counter[str] = Counter()
        self._scene = scene
        self._report = report
        self._pending: list[tuple[Said, Around]] = []
        self._said: dict[Instance, Said] = {}
        #: Since when an instance has answered nothing, or that it is broken (s, monotonic).
        self._silent: dict[Instance, float] = {}
        self.unshared = sharing.Unshared()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)
        for said, _ in self._pending:
            self._leave_out(said.figures)
        self._pending.clear()

    def cluster_is_well(self) -> bool:
        """Return whether commits go through on every partition of the log of groups."""
        now = time.monotonic()
        newest = [self._canary(canary.group) for canary in CANARIES]
        return all(one is not None and now - one.ended < _FRESH_SECONDS for one in newest)

    def all_is_right(self, since: float) -> bool:
        """Return whether an instance that was asked since then is ready, and up to date.

        If instances share: whether all are, and each group is with one.
        """
        said_by = list(self._said.values())  # the judge's own thread goes on writing
        if self._scene.shares:
            wanted = sum(instance.wanted for instance in self._scene.instances)
            if len(said_by) < max(1, wanted) or not sharing.is_complete(said_by, self._due()):
                return False
            said_by = [sharing.united(said_by)]
        return any(
            said.is_ready and said.asked > since and said.age_seconds < _FRESH_SECONDS
            for said in said_by
            if self._is_up_to_date(said)
        )

    def _canary(self, group: str) -> Sample | None:
        (place,) = GROUPS[group].partitions
        return self._scene.teller.truth.of((COMMITTED, group, *place)).newest

    def ends_well(self) -> Iterator[Violation]:
        """Yield what decisions and movements contradict, once what belongs together was read."""
        deadline = time.monotonic() + _EVENTS_SECONDS
        while (wrong := self._scene.teller.contradictions()) and time.monotonic() < deadline:
            time.sleep(0.5)
        for one in wrong:
            yield Violation(time.monotonic(), "decisions and movements agree", one, "")

    def _due(self) -> list[Watched]:
        """Return the groups whose figures have to be there by now."""
        now = time.monotonic()
        with self._scene.teller.lock:
            return [group for group in STEADY if self._is_due(group, now)]

    def _is_up_to_date(self, said: Said) -> bool:
        for group in self._due():
            if any(
                Figure(LAG, group.group, *place) not in said.figures for place in group.partitions
            ):
                return False
        for canary in CANARIES:
            newest = self._canary(canary.group)
            shown = said.figures.get(Figure(COMMITTED, canary.group, *canary.partitions[0]), 0)
            if newest is None or newest.value is None or newest.value - shown > _FRESH_SECONDS:
                return False
        return True

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            began = time.monotonic()
            number += 1
            try:
                for violation in self._round(page=number % _PAGE_EVERY == 0):
                    self._report(violation)
            except Exception as error:  # noqa: BLE001
                # A judge that is gone finds nothing.
                where = traceback.format_exc().splitlines()[-3].strip()
                self._report(Violation(began, "the judge itself works", repr(error), where))
            self._stop.wait(max(0.1, _EVERY_SECONDS - (time.monotonic() - began)))

    def _round(self, *, page: bool) -> Iterator[Violation]:
        for instance in self._scene.instances:
            before, around = self._said.pop(instance, None), self.around
            yield from self._health_of(instance, around)
            if not instance.runs or instance.suspended:
                continue
            said = self._with_ages(ask(instance.service.url, page))
            if instance.suspended or not instance.runs:
                continue
            self._said[instance] = said
            self._pending.append((said, around))
            yield from self._at_once(instance, before, said, around)
        yield from self._together()
        yield from self._later()
        teller = self._scene.teller
        while teller.twice:
            yield Violation(teller.twice[0][0], "told once", teller.twice.pop(0)[1], "")
        yield from self._undecided()

    def _with_ages(self, said: Said) -> Said:
        """Add the age of other instances' figures to that of an instance's page.

        The page has the age of each part since it was received, and not of what is in it.
        """
        if not self._scene.shares:
            return said
        others = max((one.age_seconds for one in self._said.values()), default=0.0)
        return replace(said, page_age_seconds=said.page_age_seconds + others + _EVERY_SECONDS)

    def _at_once(
        self, instance: Instance, before: Said | None, said: Said, around: Around
    ) -> Iterator[Violation]:
        teller = self._scene.teller
        yield from rules.silences(said, around, [] if self._scene.shares else self._due())
        yield from rules.ghosts(said, around, dict(self._scene.groups.deleted))
        yield from rules.shown_by_standby(said)
        with teller.lock:
            yield from rules.unread(said, teller.truth, CANARIES)
        for place, since in list(self._scene.moving.items()):
            with teller.lock:
                yield from rules.misjudged(said, place, since, teller.truth)
        for other, theirs in self._said.items():
            if other is not instance and before is not None and before.asked < theirs.asked:
                yield from (sharing.had_twice if self._scene.shares else rules.rivals)(
                    before, theirs, said
                )

    def _together(self) -> Iterator[Violation]:
        """Yield what is wrong with all instances together that share the groups."""
        if not self._scene.shares:
            return
        due, around = self._due(), self.around
        wanted = sum(instance.wanted for instance in self._scene.instances)
        if self._said and len(self._said) == wanted:
            yield from rules.silences(sharing.united([*self._said.values()]), around, due)
        had = set[str]()
        for instance, said in self._said.items():
            if not instance.cut_off:
                had |= sharing.groups_of(said)
        can_be = self._scene.can_serve and self.cluster_is_well()
        is_had = {group.group: group.group in had for group in due}
        yield from self.unshared.judge(is_had, time.monotonic(), can_be=can_be)

    def _is_due(self, watched: Watched, now: float) -> bool:
        """Return whether a group has committed for so long that its figures have to be there."""
        truth, at = self._scene.teller.truth, now - rules.ABSENT_SECONDS
        keys = [(COMMITTED, watched.group, *place) for place in watched.partitions]
        return all(truth.of(key).known_at(at) for key in keys)

    def _later(self) -> Iterator[Violation]:
        """Judge figures as soon as what was true then is known."""
        kept: list[tuple[Said, Around]] = []
        for said, around in self._pending:
            pending: list[Figure] = []
            with self._scene.teller.lock:
                truth = self._scene.teller.truth
                yield from rules.lies(said, around, truth, GROUPS, pending)
            self.judged += len(said.figures) - len(pending)
            if not pending:
                continue
            if time.monotonic() - said.asked > _PENDING_SECONDS:
                self._leave_out(pending)
                continue
            kept.append((replace(said, figures={f: said.figures[f] for f in pending}), around))
        self._pending = kept

    def _leave_out(self, figures: Iterable[Figure]) -> None:
        self.unjudged.update(f"{one.kind} {one.group or one.topic}" for one in figures)

    def _health_of(self, instance: Instance, around: Around) -> Iterator[Violation]:
        """Yield what is wrong with a process as such; one that has ended is started again."""
        now = time.monotonic()
        if not instance.wanted or instance.suspended:
            self._silent.pop(instance, None)
            return
        if not instance.runs:
            last = (instance.service.log.strip().splitlines() or [""])[-1]
            excused = around.fault_since is not None and "cannot reach Kafka" in last
            rival = any(one.runs for one in self._scene.instances if one is not instance)
            replaced = around.fault_since is not None and any(why in last for why in _REPLACED)
            if not excused and not replaced and not (rival and "active" in last):
                code = instance.service.process.exit_code
                yield Violation(now, "it runs", f"ended with {code}: {last}", "nobody ended it")
            self.restarts += 1
            instance.begin()
            return
        said = self._said_last(instance)
        if said is None or said == 200 or now - instance.since < _STARTS_SECONDS:
            self._silent.pop(instance, None)
            return
        since = self._silent.setdefault(instance, now)
        if now - since > _GONE_SECONDS:
            told = "no answer" if said == 0 else f"/healthz {said}"
            true = f"the process has run on for {now - since:.0f} s"
            yield Violation(now, "never half dead", told, true)

    def _said_last(self, instance: Instance) -> int | None:
        for said, _ in reversed(self._pending):
            if said is self._said.get(instance):
                return said.healthy
        found = self._said.get(instance)
        return None if found is None else found.healthy

    def _undecided(self) -> Iterator[Violation]:
        """Yield a generation that stands for long in calm times without a recommendation."""
        now, teller = time.monotonic(), self._scene.teller
        generation, since = teller.generations.get(NAME, (0, now))
        calm = self.around.calm_for(now)
        if min(now - since, calm) < _DECIDED_SECONDS:
            return
        if teller.once.recommended.get(NAME, 0) < generation:
            told = f"newest is {teller.once.recommended.get(NAME)}"
            true = f"{NAME} has been at generation {generation} for {now - since:.0f} s"
            yield Violation(now, "the newest generation is recommended for", told, true)
