"""Hypotheses held against one generation: which decide it, which can't have, which weren't asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.releases import Release
from caughtup.models.errors import ScenarioError
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.ranges import (
    INT_MAX,
    Algorithm,
    ConfigRange,
    Hypotheses,
    Span,
    joined,
)
from caughtup.models.learning.sifter import Finding, Part, Sifter

#: Decisions that are made at most of one generation; what wasn't decided by then stays possible.
MOST_DECISIONS = 64
#: As many in any case, and as many lags at most as are looked at: large groups take long.
_LEAST_DECISIONS = 8
_MOST_LAGS = 2_000_000


@dataclass(frozen=True, slots=True)
class Sifted:
    """What is left of hypotheses after a generation.

    ``findings`` are those there were, and ``doubts`` say why some of them are neither matches nor
    contradicted. ``decision`` is that of one that matches, or else of the first one asked, None
    without any; ``differences`` say how that one differs. ``releases_differ``: some of them decide
    what the leader did, and others don't. ``without_ends``: only the fallback assignor decides it,
    or others without end offsets.
    """

    left: Hypotheses
    findings: frozenset[Finding]
    doubts: tuple[str, ...]
    decision: Decision | None
    differences: tuple[str, ...]
    releases_differ: bool = False
    without_ends: bool = False


def sift(
    hypotheses: Hypotheses,
    evidence: Evidence,
    most: int = MOST_DECISIONS,
    *,
    spares: bool = True,
) -> Sifted:
    """Hold hypotheses against a generation, with so many more decisions at most.

    Of a large group fewer are made.

    A part of them is dropped only where what it decides differs for certain, no input is unknown,
    and the leader can't have decided without end offsets, unless that isn't to spare any.
    """
    most = min(most, max(_LEAST_DECISIONS, _MOST_LAGS // max(1, evidence.lags)))
    sifter = Sifter(evidence, evidence.decisions + most, spares=spares)
    parts = [*sifter.parts(hypotheses)]
    doubts = list(evidence.doubts)
    spared: dict[Span, Span] = {}
    if spares and any(finding is Finding.CONTRADICTED for _, finding in parts):
        for releases in {one.releases for one, _ in parts}:
            span = _standbys_of_a_fallback(evidence, parts, releases)
            if span is not None:
                spared[releases] = span
        parts = [
            (one, Finding.UNSURE)
            if finding is Finding.CONTRADICTED and _is_spared(one, spared.get(one.releases))
            else (one, finding)
            for one, finding in parts
        ]
    if spared or sifter.is_spared:
        doubts.append("its leader may not have had end offsets, and decided without")
    findings = frozenset(finding for _, finding in parts)
    matched = {one.algorithm.assignor for one, finding in parts if finding is Finding.MATCH}
    by_release: dict[Span, set[Finding]] = {}
    for one, finding in parts:
        by_release.setdefault(one.releases, set()).add(finding)
    if Finding.UNSURE in findings:
        doubts += evidence.unsettled_tasks
    if sifter.is_spent:
        doubts.append("there are more hypotheses than were tried")
    return Sifted(
        joined(one for one, finding in parts if finding is not Finding.CONTRADICTED),
        findings,
        tuple(doubts),
        sifter.decision,
        sifter.texts,
        len({Finding.MATCH in found for found in by_release.values()}) > 1,
        matched == {"fallback_prior"} and bool(spared or sifter.is_spared),
    )


def _is_spared(one: ConfigRange, spared: Span | None) -> bool:
    return (
        spared is not None
        and one.algorithm.assignor == "high_availability"
        and one.standbys.meet(spared) is not None
    )


def _standbys_of_a_fallback(
    evidence: Evidence, parts: Sequence[Part], releases: Span
) -> Span | None:
    """Return the numbers of standbys with which the fallback assignor decides the same."""
    available = Algorithm("high_availability", release=Release(releases.high))
    if evidence.is_quiet:
        return None  # the fallback always asks for a probing rebalance
    most = evidence.clients - 1  # more than that are no more
    numbers = [
        Span(number, number if number < most else INT_MAX) for number in evidence.standbys_given()
    ]
    try:
        fits = [
            span
            for span in numbers
            if any(one.standbys.meet(span) for one, _ in parts if one.releases == releases)
            and evidence.is_explained_without_ends(available, span.low)
        ]
    except ScenarioError:
        return None
    return Span(fits[0].low, fits[-1].high) if fits else None
