"""One generation decided: what the leader did, what is recommended instead, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from caughtup.models.decisions.caught_up_copies import CaughtUpCopies, caught_up_copies
from caughtup.models.decisions.exact.follower import recompute_follower
from caughtup.models.decisions.exact.generation import ExactResult, recompute
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.projection import project
from caughtup.models.decisions.recommendation import (
    movement_fields,
    read_recommendation,
    recommendation,
)
from caughtup.models.decisions.task_table import TaskCopy, given_copies
from caughtup.models.groups.generation import StreamsGeneration

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DueGeneration:
    """A generation whose decision is due, with all that it is to be decided from.

    ``told`` is what its leader told of the rebalance, if it tells, and ``published`` what was
    recommended before, in that order: a follower may have followed it. ``revises`` is the
    decision that there was, where copies have caught up since. ``worthwhile_at_ms``: from when on
    a probing rebalance is worth it, as far as the copies' pace tells, and ``rates`` where that is
    from (``CopyWatch.rates``). ``untold``: the leader may
    yet tell of the rebalance, and then of rules that aren't Kafka's.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    told: ApplicationState | None = None
    published: tuple[Record, ...] = ()
    revises: DecidedGeneration | None = None
    worthwhile_at_ms: int | None = None
    rates: str | None = None
    untold: bool = False


@dataclass(frozen=True, slots=True)
class DecidedGeneration:
    """A generation with what it was decided from, how exact mode fared, and the record if any.

    ``leader_movements`` are those that its leader planned, None where that isn't known, and
    ``copies`` what each process has, as the generation began. ``caught_up``: the copies that the
    decision was made knowing to be caught up. ``premature``: it isn't what Kafka's assignor
    decides, and may not be Kafka's assignor's. ``read_back``: it was published before a restart.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    exact: ExactResult
    record: Record | None
    leader_movements: tuple[Mapping[str, Any], ...] | None
    copies: tuple[TaskCopy, ...]
    caught_up: CaughtUpCopies
    revises: DecidedGeneration | None = None
    premature: bool = False
    read_back: bool = False

    @property
    def movements(self) -> list[Mapping[str, Any]]:
        """The movements of the recommendation; none without one."""
        return list(self.record["movements"]) if self.record else []


def decide_generation(cluster: str, due: DueGeneration, now_ms: int) -> DecidedGeneration:
    """Decide a generation: pure, so that any thread may do it. ``now_ms`` goes into the record."""
    generation, inputs = due.generation, due.inputs
    if due.revises is not None:
        exact = due.revises.exact
    elif due.told is not None:
        exact = recompute_follower(generation, inputs, due.told, due.published)
    else:
        exact = recompute(generation, inputs)
    record: Record | None = recommendation(
        cluster, generation, inputs, exact, now_ms, due.worthwhile_at_ms, due.rates
    )
    if due.revises is not None:
        if _says_the_same(record, due.revises.record):
            record = due.revises.record
        return replace(
            due.revises,
            inputs=inputs,
            record=record,
            caught_up=caught_up_copies(inputs.scenario),
            revises=replace(due.revises, revises=None),
            read_back=False,
        )
    premature = due.untold and (exact.result == "mismatch" or generation.follows)
    return replace(_decided(generation, inputs, exact, record), premature=premature)


def read_back(generation: StreamsGeneration, record: Record) -> DecidedGeneration:
    """Read a generation's decision from its record. Raises CaughtupError if it isn't one of ours."""
    inputs, exact = read_recommendation(record)
    return replace(_decided(generation, inputs, exact, record), read_back=True)


def _decided(
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    record: Record | None,
) -> DecidedGeneration:
    """Put a decision together with all that follows from it for as long as it stands."""
    if exact.decision is not None:
        exact = replace(exact, decision=exact.decision.explained())
    leader_movements = None
    if exact.decision is not None and exact.plans:
        leader_movements = tuple(map(movement_fields, exact.decision.movements))
    trusted = exact.decision if exact.result == "match" else None
    scenario = inputs.scenario
    if not inputs.projected:
        scenario = project(generation, scenario, {}) or scenario
    return DecidedGeneration(
        generation,
        inputs,
        exact,
        record,
        leader_movements,
        given_copies(generation, inputs, trusted),
        caught_up_copies(scenario),
    )


def _says_the_same(record: Record | None, before: Record | None) -> bool:
    """Tell whether whoever follows the one does what whoever follows the other does."""
    if record is None or before is None:
        return True
    names = ("assignment", "probing_rebalance")
    return all(record[name] == before[name] for name in names)
