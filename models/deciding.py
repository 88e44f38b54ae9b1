"""One generation decided: what the leader did, what is recommended instead, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from caughtup.models.application_state import ApplicationState
from caughtup.models.exact import ExactResult, recompute
from caughtup.models.exact_follower import recompute_follower
from caughtup.models.groups import StreamsGeneration
from caughtup.models.inputs import GenerationInputs
from caughtup.models.recommendation import recommendation

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

    ``premature``: it isn't what Kafka's assignor decides, and may not be Kafka's assignor's.
    """

    generation: StreamsGeneration
    inputs: GenerationInputs
    exact: ExactResult
    record: Record | None
    revises: DecidedGeneration | None = None
    premature: bool = False

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
    if due.revises is not None and _says_the_same(record, due.revises.record):
        record = due.revises.record
    revises = due.revises and replace(due.revises, revises=None)
    premature = due.untold and (exact.result == "mismatch" or generation.follows)
    return DecidedGeneration(generation, inputs, exact, record, revises, premature)


def _says_the_same(record: Record | None, before: Record | None) -> bool:
    """Tell whether whoever follows the one does what whoever follows the other does."""
    if record is None or before is None:
        return True
    names = ("assignment", "probing_rebalance")
    return all(record[name] == before[name] for name in names)
