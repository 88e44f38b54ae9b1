"""Test which ranges of configs explain a generation; cut each into parts with equal decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise, zip_longest

from caughtup.models.assignment.client_state import UNBOUNDED
from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.decision import Decision
from caughtup.models.errors import ScenarioError
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.ranges import ConfigRange, Hypotheses, IntSpan
from caughtup.models.learning.target import Target, lag_classes, used_warm_ups


class Judgement(Enum):
    """The result of testing a range of configs against a generation.

    ``MATCH``: it decides as the leader did. ``CONTRADICTED``: it can't have been the leader's.
    ``UNSURE``: it decides otherwise, but not all inputs are known. ``UNTESTED``: the number of
    decisions was used up before.
    """

    MATCH = "match"
    CONTRADICTED = "contradicted"
    UNSURE = "unsure"
    UNTESTED = "untested"


#: A part of a range, and the judgement on it.
JudgedRange = tuple[ConfigRange, Judgement]


class Sifter:
    """Tests one range after the other, until the allowed decisions are used up."""

    def __init__(self, evidence: Evidence, most: int, *, spares: bool = True) -> None:
        """Prepare a test with at most ``most`` decisions.

        ``spares``: whether a decision that a leader may have made without end offsets is evidence of
        nothing.
        """
        self._evidence = evidence
        self._spares = spares
        self._most = most
        self._certain = not evidence.doubts
        self._matches = False
        #: Whether the leader may have decided without end offsets.
        self.is_spared = False
        self.decision: Decision | None = None
        self.texts: tuple[str, ...] = ()

    def parts(self, hypotheses: Hypotheses) -> Iterator[JudgedRange]:
        """Yield the parts of ranges that decide alike, each with its judgement.

        The newest releases come first, since their decisions hold for most others as well.
        """
        cut = [[(one, own) for own in self._evidence.releases(one)] for one in hypotheses]
        for one, releases in (own for turn in zip_longest(*cut) for own in turn if own):
            algorithm = one.algorithm._replace(release=Release(releases.high))
            asked = replace(one, algorithm=algorithm, releases=releases)
            for part, found in self._of_one_release(asked):
                yield replace(part, algorithm=one.algorithm), found

    def _of_one_release(self, one: ConfigRange) -> Iterator[JudgedRange]:
        assignor = one.algorithm.assignor
        of_standbys: Callable[[ConfigRange, int], tuple[list[JudgedRange], bool]]
        of_standbys = self._available if assignor == "high_availability" else self._sticky
        # A public assignor's standbys may be on any client, so that their number doesn't matter.
        most = 1 if assignor == "public_sticky" else self._evidence.clients - 1
        low = one.standbys.low
        while low <= one.standbys.high:
            high = one.standbys.high if low >= most else low
            rest = replace(one, standbys=IntSpan(low, one.standbys.high))
            if self.is_spent:
                yield rest, Judgement.UNTESTED
                return
            part = replace(one, standbys=IntSpan(low, high))
            try:
                found, too_many = of_standbys(part, low)
            except ScenarioError:
                found, too_many = [(part, Judgement.UNTESTED)], False
            if too_many:
                yield rest, Judgement.CONTRADICTED
                return
            yield from found
            low = high + 1

    @property
    def is_spent(self) -> bool:
        """Whether the allowed decisions are used up."""
        return self._evidence.decisions >= self._most

    def _sticky(self, part: ConfigRange, standbys: int) -> tuple[list[JudgedRange], bool]:
        """Test a sticky assignor, which ignores lags and warm-ups."""
        found = self._ask(part, standbys, 1, 0, certain=self._certain)
        gives_way = part.algorithm.assignor == "fallback_prior"
        spared = (self._spares or gives_way) and found is Judgement.CONTRADICTED
        if spared and self._evidence.is_explained_without_ends(part.algorithm, standbys):
            self.is_spared = self.is_spared or not gives_way
            # A leader that uses the fallback has no end offsets, and assigns threads without them.
            found = self._matching(part, standbys, 1, 0) if gives_way else Judgement.UNSURE
        copies = self._evidence.copies(part.algorithm, standbys)
        deals = part.algorithm.assignor != "public_sticky"
        return [(part, found)], deals and self._certain and copies > self._evidence.copies_given

    def _available(self, part: ConfigRange, standbys: int) -> tuple[list[JudgedRange], bool]:
        """Test the high availability assignor.

        True if it has more standbys than the members have.
        """
        evidence = self._evidence
        if part.lag.low == part.lag.high and part.warm_ups.low == part.warm_ups.high:
            settled = not any(part.lag.meet(span) for span in evidence.unsettled)
            certain = self._certain and settled
            asked = part.warm_ups.low, part.lag.low
            return [(part, self._ask(part, standbys, *asked, certain=certain))], False
        target = evidence.target(part.algorithm, standbys)
        if self._certain and target.copies > evidence.copies_given:
            self._note(target.decision, ("there should be more standbys",))
            return [], True
        parts: list[JudgedRange] = []
        for span in _halving(lag_classes(target, part.lag)):
            for lag, settled in _split(span, evidence.unsettled):
                within = replace(part, lag=lag)
                certain = self._certain and settled
                if certain and self._is_ruled_out(target, lag, part.algorithm.release):
                    parts.append((within, Judgement.CONTRADICTED))
                elif self.is_spent and lag.low < target.settled_from:
                    parts.append((within, Judgement.UNTESTED))
                else:
                    parts += self._warm_ups(within, standbys, target, certain=certain)
        return parts, False

    def _is_ruled_out(self, target: Target, lag: IntSpan, release: Release) -> bool:
        """Return whether a lag is impossible, without any decision.

        An active that waits requires a probing rebalance, but before 3.2 it only waits if some
        client is caught up; and each copy beyond the standbys is the warm-up of one that waits. All
        lags in the span decide alike.
        """
        evidence = self._evidence
        waits = target.waiting_actives and target.waiting_actives[-1] > lag.high
        if evidence.is_quiet and waits and release >= Release.V3_2:
            return True
        extra = evidence.copies_given - evidence.held_back - target.copies
        return sum(waits > lag.low for waits in target.waiting) < extra

    def _warm_ups(
        self, part: ConfigRange, standbys: int, target: Target, *, certain: bool
    ) -> list[JudgedRange]:
        """Test each number of warm-ups with which the members' assignments are possible.

        A limit above the number used changes nothing, so that number stands for all greater ones.
        With fewer, all allowed ones are used, so that the number of copies determines it; a task
        that is held back may have a standby meanwhile, and so count as one.
        """
        evidence, spans = self._evidence, part.warm_ups
        if part.lag.low >= target.settled_from:
            used, lag = 0, UNBOUNDED
        else:
            lag = part.lag.low
            decision = evidence.decide(part.algorithm, standbys, spans.high, lag)
            used = used_warm_ups(decision)
        most_extra = evidence.copies_given - target.copies
        extra = IntSpan(most_extra - evidence.held_back, most_extra)
        parts: list[JudgedRange] = []
        untold = IntSpan(max(spans.low, used), spans.high)
        if not certain or extra.low <= used <= extra.high:
            asked = 1 if lag == UNBOUNDED else spans.high
            found = self._ask(part, standbys, asked, lag, certain=certain)
        else:
            found = Judgement.CONTRADICTED
        parts.append((replace(part, warm_ups=untold), found))
        if untold.low == spans.low:
            return parts
        fewer = IntSpan(spans.low, used - 1)
        if not certain:
            return [*parts, (replace(part, warm_ups=fewer), Judgement.UNTESTED)]
        candidates = fewer.meet(extra) if extra.low <= extra.high else None
        at = fewer.low
        for number in range(candidates.low, candidates.high + 1) if candidates else ():
            if number > at:
                before = replace(part, warm_ups=IntSpan(at, number - 1))
                parts.append((before, Judgement.CONTRADICTED))
            one = replace(part, warm_ups=IntSpan(number, number))
            found = Judgement.UNTESTED
            if not self.is_spent:
                found = self._ask(one, standbys, number, part.lag.low, certain=True)
            parts.append((one, found))
            at = number + 1
        if at <= fewer.high:
            parts.append((replace(part, warm_ups=IntSpan(at, fewer.high)), Judgement.CONTRADICTED))
        return parts

    def _ask(
        self, part: ConfigRange, standbys: int, warm_ups: int, lag: int, *, certain: bool
    ) -> Judgement:
        algorithm, evidence = part.algorithm, self._evidence
        if certain and self.decision is not None and algorithm.assignor != "public_sticky":
            decision = evidence.decide(algorithm, standbys, warm_ups, lag)
            if evidence.processes_differ(decision):  # no need to compare member by member
                return Judgement.CONTRADICTED
        differences = evidence.judged_differences(algorithm, standbys, warm_ups, lag)
        if not differences:
            return self._matching(part, standbys, warm_ups, lag)
        if self.decision is None:
            self._note(
                evidence.decide(algorithm, standbys, warm_ups, lag),
                tuple(one.text for one in differences),
            )
        if certain and any(one.certain for one in differences):
            return Judgement.CONTRADICTED
        return Judgement.UNSURE

    def _matching(self, part: ConfigRange, standbys: int, warm_ups: int, lag: int) -> Judgement:
        if not self._matches:
            self._matches, self.texts = True, ()
            self.decision = self._evidence.decide(part.algorithm, standbys, warm_ups, lag)
        return Judgement.MATCH

    def _note(self, decision: Decision, texts: tuple[str, ...]) -> None:
        if self.decision is None:
            self.decision, self.texts = decision, texts


def _split(span: IntSpan, unsettled: Sequence[IntSpan]) -> Iterator[tuple[IntSpan, bool]]:
    """Yield the parts of a span, each with whether the caught-up copies are known throughout it."""
    low = span.low
    for doubtful in unsettled:
        met = span.meet(doubtful)
        if met is None:
            continue
        if low < met.low:
            yield IntSpan(low, met.low - 1), True
        yield met, False
        low = met.high + 1
    if low <= span.high:
        yield IntSpan(low, span.high), True


def _halving(spans: Sequence[IntSpan]) -> Iterator[IntSpan]:
    """Yield the last span, the first, then again and again one half-way between two."""
    if not spans:
        return
    seen = dict.fromkeys((len(spans) - 1, 0))
    step = len(spans) - 1
    while len(seen) < len(spans):
        for low, high in pairwise(sorted(seen)):
            seen[(low + high) // 2] = None
        step //= 2
    yield from (spans[place] for place in seen)
