"""One generation decided: what the leader did, what is recommended instead, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignors.decision import Decision
from caughtup.models.exact import ExactResult, recompute
from caughtup.models.groups import StreamsGeneration
from caughtup.models.inputs import GenerationInputs
from caughtup.models.recommendation import recommend, recommendation


@dataclass(frozen=True, slots=True)
class DueGeneration:
    """A generation whose decision is due, with all that it is to be decided from."""

    generation: StreamsGeneration
    inputs: GenerationInputs


@dataclass(frozen=True, slots=True)
class DecidedGeneration:
    """A generation with what it was decided from, how exact mode fared, and the record if any."""

    generation: StreamsGeneration
    inputs: GenerationInputs
    exact: ExactResult
    recommended: Decision | None
    record: Mapping[str, Any] | None

    @property
    def movements(self) -> list[Mapping[str, Any]]:
        """The movements of the recommendation; none without one."""
        return list(self.record["movements"]) if self.record else []


def decide_generation(cluster: str, due: DueGeneration, now_ms: int) -> DecidedGeneration:
    """Decide a generation: pure, so that any thread may do it. ``now_ms`` goes into the record."""
    exact = recompute(due.generation, due.inputs)
    recommended = recommend(due.inputs)
    record = recommendation(cluster, due.generation, due.inputs, exact, recommended, now_ms)
    return DecidedGeneration(due.generation, due.inputs, exact, recommended, record)
