"""Assessed warm-ups, as input for the effect of a probing rebalance."""

from __future__ import annotations

from caughtup.models.copies.figures import CopyFigures
from caughtup.models.copies.probing import Probing, ProbingHistory, assess_probing
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.histories.trend import Eta, Trend
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.parameters import ApplicationParameters
from tests.support.groups.records import START_MS

SECOND = 1_000
KAFKAS_DEFAULTS = ApplicationParameters()


def warmup(
    partition: int,
    verdict: str = "warming",
    *,
    eta: float | None = None,
    caught_up: float | None = None,
    closing: float | None = None,
    is_warmup: bool = True,
) -> CopyAssessment:
    """Return a warm-up; ``eta`` is in seconds, ``caught_up`` in seconds after the start."""
    figures = CopyFigures(
        lag=None,
        provenance=None,
        limit=10_000,
        age_seconds=0.0,
        caught_up_since_ms=None,
        estimated_lag=None,
        closing=None if closing is None else Trend(closing, 0.0, 0.0, 60.0, 12),
        rate=None,
        growth=None,
        pace=None,
        eta=None if eta is None else Eta(eta, eta, eta),
        stood_seconds=0.0,
        allowed_seconds=None,
        set_back=None,
        seen_every_seconds=None,
    )
    return CopyAssessment(
        copy=CopyKey("process", TaskId(0, partition)),
        role="warmup" if is_warmup else "standby",
        is_warmup=is_warmup,
        verdict=verdict,
        reason="",
        figures=figures,
        caught_up_since_ms=None if caught_up is None else START_MS + round(caught_up * SECOND),
    )


def scheduled(due_second: float | None = 600.0) -> ProbingHistory:
    """Assess the probing ``second`` seconds after the start."""
    history = ProbingHistory()
    history.since_ms = START_MS
    history.due_ms = None if due_second is None else START_MS + round(due_second * SECOND)
    return history


def assess(
    *copies: CopyAssessment,
    second: float = 0,
    history: ProbingHistory | None = None,
    to_build: tuple[int, ...] = (),
) -> Probing:
    """Assess the probing so many seconds after the start."""
    now_ms = START_MS + round(second * SECOND)
    return assess_probing(history or scheduled(), copies, KAFKAS_DEFAULTS, now_ms, to_build)
