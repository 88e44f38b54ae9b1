"""What is known of a Connect group after each of its generations, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import Round
from caughtup.models.connect.generation import (
    ConnectGeneration,
    assigned,
    owned_then,
    seen_configuration,
    unassigned,
    worker_id,
)
from caughtup.models.connect.watching.absences import MembershipWindow
from caughtup.models.connect.watching.comparison import Comparison, Result, decide_again
from caughtup.models.connect.watching.forecast import Forecast, Imbalance, forecast, imbalance
from caughtup.models.connect.watching.remembered import Hypothesis, Remembered, distinct, fresh
from caughtup.models.connect.work import Item
from caughtup.models.durations import counted
from caughtup.models.wire.connect_protocol import EAGER, ConnectorsAndTasks

#: The most generations in a group's history: the newest ones.
HISTORY = 20
_BEFORE = "caughtup first saw the group after its leader had begun to assign, and does not know what the leader remembers"


@dataclass(frozen=True, slots=True)
class Past:
    """A generation of the history: its comparison, and how much was assigned and revoked."""

    generation: int
    at_ms: int
    result: Result
    why: str
    workers: int
    assigned: int
    revoked: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Watch:
    """A group after its newest generation.

    ``connectors`` is the configuration that the generation was decided from: the worker cluster's
    own if ``configured``, else the smallest that explains it. ``owned`` is what each member owns
    after its assignment. ``since_ms`` has when each unassigned item was first seen without a
    worker, ``given_ms`` when each assigned item was assigned, if that was seen. ``led`` has what
    each worker that led may remember, ``known`` the workers whose first generation was seen, and
    ``uneven_since_ms`` since when the group is at rest and uneven. ``counts`` counts all
    generations by result.
    """

    generation: ConnectGeneration
    connectors: Mapping[str, int]
    configured: bool
    owned: Mapping[str, ConnectorsAndTasks]
    comparison: Comparison
    forecast: Forecast
    unassigned: ConnectorsAndTasks
    since_ms: Mapping[Item, int]
    given_ms: Mapping[Item, int]
    membership: MembershipWindow
    imbalance: Imbalance
    uneven_since_ms: int | None = None
    led: Mapping[str, Remembered] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    counts: Mapping[Result, int] = field(default_factory=dict)
    history: tuple[Past, ...] = ()


def follow(
    before: Watch | None, generation: ConnectGeneration, connectors: Mapping[str, int] | None
) -> Watch:
    """Return a group after its next generation, which is decided again.

    ``connectors`` is the configuration as far as the leader had read it, None if unknown.
    """
    remembered = _remembered(before, generation)
    comparison = decide_again(generation, connectors, remembered)
    configured = dict(connectors) if connectors is not None else _least(before, generation)
    without = unassigned(generation, configured)
    at_ms = max(generation.as_of_ms, 0)
    earlier: Mapping[Item, int] = before.since_ms if before is not None else {}
    items: tuple[Item, ...] = (*without.connectors, *without.tasks)
    owned = {name: worker.owns for name, worker in generation.workers.items()}
    foreseen = forecast(generation, configured, comparison.remembered)
    uneven = imbalance(owned)
    at_rest = foreseen.at_ms is None and uneven.is_uneven
    since_ms = before.uneven_since_ms if before is not None else None
    past = Past(
        generation.generation,
        at_ms,
        comparison.result,
        comparison.why,
        len(generation.workers),
        *_changed(generation),
        generation.delay_ms,
    )
    leader = _leader(generation)
    led = dict(before.led) if before is not None else {}
    if leader and comparison.remembered is not None:
        led[leader] = comparison.remembered
    counts = dict(before.counts) if before is not None else {}
    counts[comparison.result] = counts.get(comparison.result, 0) + 1
    here = {worker_id(worker) for worker in generation.workers.values()}
    new = here - {worker_id(w) for w in before.generation.workers.values()} if before else set()
    return Watch(
        generation=generation,
        connectors=configured,
        configured=connectors is not None,
        owned=owned,
        comparison=comparison,
        forecast=foreseen,
        unassigned=without,
        since_ms={item: min(earlier.get(item, at_ms), at_ms) for item in items},
        given_ms=_assigned_ms(before, generation, at_ms),
        membership=(before.membership if before is not None else MembershipWindow()).after(
            before.generation if before is not None else None, generation
        ),
        imbalance=uneven,
        uneven_since_ms=(at_ms if since_ms is None else since_ms) if at_rest else None,
        led=led,
        known=(before.known if before is not None else frozenset()) | new,
        counts=counts,
        history=(*(before.history if before is not None else ()), past)[-HISTORY:],
    )


def _assigned_ms(
    before: Watch | None, generation: ConnectGeneration, at_ms: int
) -> dict[Item, int]:
    """Return when each connector and task was assigned to its worker, in ms."""
    owned, now = owned_then(generation), assigned(generation)
    earlier: Mapping[Item, int] = before.given_ms if before is not None else {}
    started: tuple[Item, ...] = (*now.connectors, *now.tasks)
    kept = {
        item: since
        for item, since in earlier.items()
        if item in (owned.connectors if isinstance(item, str) else owned.tasks)
    }
    return {**kept, **dict.fromkeys(started, at_ms)}


def _changed(generation: ConnectGeneration) -> tuple[int, int]:
    """Return how many connectors and tasks were assigned, and how many revoked."""
    sent = [one.assignment for one in generation.workers.values() if one.assignment is not None]
    assigned = sum(len(one.assigned.connectors) + len(one.assigned.tasks) for one in sent)
    revoked = sum(len(one.revoked.connectors) + len(one.revoked.tasks) for one in sent)
    return assigned, revoked


def _least(before: Watch | None, generation: ConnectGeneration) -> dict[str, int]:
    """Return the smallest configuration: what is run, and what waits since earlier generations."""
    least = seen_configuration(generation)
    if before is None or not generation.delay_ms:
        return least
    for connector, tasks in sorted(before.connectors.items()):
        least[connector] = max(tasks, least.get(connector, 0))
    return least


def _leader(generation: ConnectGeneration) -> str:
    """Return the id of the worker that led, "" if it could not be decoded."""
    worker = generation.workers.get(generation.leader or "")
    return "" if worker is None else worker_id(worker)


def _remembered(before: Watch | None, generation: ConnectGeneration) -> Remembered:
    """Return what a generation's leader may remember when it decides."""
    if before is None:
        first = generation.generation <= 1
        return fresh(None, "" if first else _BEFORE)
    last = before.generation
    known = before.comparison.remembered or fresh(_any(before))
    if generation.protocol == EAGER:
        return known
    if generation.leader == last.leader:
        missed = generation.generation - last.generation - 1
        if missed <= 0:
            return known
        return _missed(known, before, missed)
    leader = _leader(generation)
    led = before.led.get(leader)
    if led is not None:
        return fresh(known).either(led.not_completed())
    return fresh(known, "" if leader in before.known | _new(before, generation) else _BEFORE)


def _any(before: Watch) -> Remembered | None:
    return next(iter(before.led.values()), None)


def _new(before: Watch, generation: ConnectGeneration) -> frozenset[str]:
    """Return the ids of workers that were not in the generation before."""
    there = {worker_id(worker) for worker in before.generation.workers.values()}
    here = {worker_id(worker) for worker in generation.workers.values()}
    return frozenset(here - there)


def _missed(known: Remembered, before: Watch, missed: int) -> Remembered:
    """Return what a leader may remember after rounds that are not in the log.

    Either it decided none of them, or it decided one, from what workers owned after the round
    before, whose assignment no worker got.
    """
    last = before.generation
    owned = {name: worker.owns for name, worker in last.workers.items()}
    decided = []
    for one in known.hypotheses:
        round_ = Round(max(last.as_of_ms, 0), before.connectors, owned)
        _, memory = decide_incremental(round_, one.memory, one.max_delay_ms)
        decided.append(Hypothesis(memory, one.max_delay_ms, last_completed=False))
    why = f"caughtup did not see {counted(missed, 'generation')} before this one"
    either = known.either(known.not_completed(), why)
    return replace(either, hypotheses=distinct((*either.hypotheses, *decided)))
