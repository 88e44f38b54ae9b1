"""The test of hypotheses against one generation: which of them it contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.decision import Decision
from caughtup.models.errors import ScenarioError
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.ranges import (
    INT_MAX,
    Algorithm,
    ConfigRange,
    Hypotheses,
    IntSpan,
    joined,
)
from caughtup.models.learning.sifter import JudgedRange, Judgement, Sifter

#: The most decisions for one generation; hypotheses that are not tested by then stay possible.
MOST_DECISIONS = 64
#: Large groups get fewer decisions, but at least this many; a decision reads each client's lags.
_LEAST_DECISIONS = 8
_MOST_LAGS = 2_000_000


@dataclass(frozen=True, slots=True)
class Sifted:
    """The remaining hypotheses after a generation.

    ``findings`` are the judgements that occurred, and ``doubts`` say why some hypotheses are
    neither matches nor contradicted. ``decision`` is that of a hypothesis that matches, or else of
    the first one tested, None without any; ``differences`` say how that one differs.
    ``releases_differ``: some releases decide as the leader did, and others don't. ``without_ends``:
    only the fallback assignor, or others without end offsets, decide as the leader did. ``spared``:
    the leader may have decided without end offsets.
    """

    left: Hypotheses
    findings: frozenset[Judgement]
    doubts: tuple[str, ...]
    decision: Decision | None
    differences: tuple[str, ...]
    releases_differ: bool = False
    without_ends: bool = False
    spared: bool = False


def sift(
    hypotheses: Hypotheses,
    evidence: Evidence,
    most: int = MOST_DECISIONS,
    *,
    spares: bool = True,
) -> Sifted:
    """Test hypotheses against a generation, with at most ``most`` more decisions.

    Large groups get fewer. A part of the hypotheses is dropped only if its decision differs for
    certain, no input is unknown, and the leader can't have decided without end offsets; with
    ``spares`` False the last condition doesn't count.
    """
    most = min(most, max(_LEAST_DECISIONS, _MOST_LAGS // max(1, evidence.lags)))
    sifter = Sifter(evidence, evidence.decisions + most, spares=spares)
    parts = [*sifter.parts(hypotheses)]
    doubts = list(evidence.doubts)
    spared: dict[IntSpan, IntSpan] = {}
    if spares and any(finding is Judgement.CONTRADICTED for _, finding in parts):
        for releases in {one.releases for one, _ in parts}:
            span = _standbys_of_a_fallback(evidence, parts, releases)
            if span is not None:
                spared[releases] = span
        parts = [
            (one, Judgement.UNSURE)
            if finding is Judgement.CONTRADICTED and _is_spared(one, spared.get(one.releases))
            else (one, finding)
            for one, finding in parts
        ]
    is_spared = bool(spared) or sifter.is_spared
    if is_spared:
        doubts.append("its leader may have decided without end offsets")
    findings = frozenset(finding for _, finding in parts)
    matched = {one.algorithm.assignor for one, finding in parts if finding is Judgement.MATCH}
    by_release: dict[IntSpan, set[Judgement]] = {}
    for one, finding in parts:
        by_release.setdefault(one.releases, set()).add(finding)
    if Judgement.UNSURE in findings:
        doubts += evidence.unsettled_tasks
    if sifter.is_spent:
        doubts.append("there are more possible configs than caughtup tries")
    return Sifted(
        joined(one for one, finding in parts if finding is not Judgement.CONTRADICTED),
        findings,
        tuple(doubts),
        sifter.decision,
        sifter.texts,
        len({Judgement.MATCH in found for found in by_release.values()}) > 1,
        matched == {"fallback_prior"} and is_spared,
        is_spared,
    )


def _is_spared(one: ConfigRange, spared: IntSpan | None) -> bool:
    return (
        spared is not None
        and one.algorithm.assignor == "high_availability"
        and one.standbys.meet(spared) is not None
    )


def _standbys_of_a_fallback(
    evidence: Evidence, parts: Sequence[JudgedRange], releases: IntSpan
) -> IntSpan | None:
    """Return the numbers of standbys with which the fallback assignor decides as the leader did."""
    available = Algorithm("high_availability", release=Release(releases.high))
    if evidence.is_quiet:
        return None  # the fallback always asks for a probing rebalance
    most = evidence.clients - 1  # more standbys than this make no difference
    numbers = [
        IntSpan(number, number if number < most else INT_MAX)
        for number in evidence.standbys_given()
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
    return IntSpan(fits[0].low, fits[-1].high) if fits else None
