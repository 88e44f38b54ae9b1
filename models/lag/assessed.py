"""The assessments of a group's partitions, and for how long each holds."""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import KeysView, Mapping, Sequence
from typing import Literal, NamedTuple

from caughtup.models.durations import same_text_seconds
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import LagFigures
from caughtup.models.lag.rates import INTERVALS_ALLOWED
from caughtup.models.lag.verdict import NOTHING_TO_READ, Verdict, grown, holds_seconds


class Assessed(NamedTuple):
    """The assessment of one partition of a group; None = unknown.

    ``lag_seconds`` is the age of the oldest unread record, ``error_seconds`` its greatest error and
    ``lag_seconds_method`` one of ``caught_up``, ``interpolated`` and ``at_least``. ``velocity`` is the growth
    of the lag in records a second. ``eta_seconds`` is the time until the group has caught up,
    inf = never. A ``PartitionLine`` has the figures of which it has a field.
    """

    verdict: str
    why: str
    lag_seconds: float | None
    error_seconds: float | None
    lag_seconds_method: str | None
    velocity: float | None
    eta_seconds: float | None


AT_THE_END = Assessed(*NOTHING_TO_READ[:2], 0.0, 0.0, "caught_up", None, 0.0)

#: What changes an assessment besides commits and samples of its own partition: the group's other
#: partitions, since it has no interval of its own; samples that only repeat the one before them, as
#: a rate does that falls with time.
ON_OTHERS, ON_REPEATS = 1, 2
#: An assessment is made again so much earlier: its end is computed in floats.
_ALLOWANCE_MS = 1

Measure = Literal["lag_seconds", "velocity", "eta_seconds"]
#: The numbers of a partition, in its row: since when (ms) its oldest record is unread, infinity if
#: that is no time at all; the fields of an ``Assessed``; since when (ms) what its reason tells lasts;
#: until when (ms) only these times grow if nothing happens. NaN is unknown.
_SINCE_MS, _ERROR, _VELOCITY, _ETA, _TOLD_MS, _UNTIL_MS, _WIDTH = range(7)
_NUMBERS_OF_A_ROW = struct.Struct(f"{_WIDTH}d")
_NUMBERS: Mapping[Measure, int] = {
    "lag_seconds": _SINCE_MS,
    "velocity": _VELOCITY,
    "eta_seconds": _ETA,
}
_NO_ROW = -1
_NOTHING = (math.nan,) * (_WIDTH - 1) + (math.inf,)


class AssessedPartitions:
    """The assessments of those partitions of a group that have lag, in columns with rows.

    Millions of them are held at once, so each is a row of numbers and of words that many share.
    """

    __slots__ = ("_depends", "_free", "_methods", "_numbers", "_reasons", "_rows", "_verdicts")

    def __init__(self) -> None:
        self._rows: dict[TopicPartition, int] = {}
        self._free: list[int] = []
        self._verdicts: list[str] = []
        #: With the text of a ``GrowingReason``, where there is one.
        self._reasons: list[str] = []
        self._methods: list[str | None] = []
        self._numbers = array("d")
        self._depends = bytearray()

    def __len__(self) -> int:
        return len(self._rows)

    def partitions(self) -> KeysView[TopicPartition]:
        """Return the partitions."""
        return self._rows.keys()

    def put(
        self,
        partition: TopicPartition,
        verdict: Verdict,
        figures: LagFigures,
        commits: CommitHistory | None,
        ends: EndOffsetHistory,
        now_ms: int,
        *,
        on_others: bool,
    ) -> int:
        """Keep an assessment that was made at ``now_ms``; return what else changes it.

        ``on_others``: the partition has no interval of its own.
        """
        row = self._row(partition)
        age, growing = figures.age, verdict.growing
        since_ms = math.nan if age is None else _since_ms(age.seconds, now_ms)
        told_ms = math.nan
        if growing is not None:
            is_age = age is not None and growing.seconds == age.seconds
            told_ms = since_ms if is_age else _since_ms(growing.seconds, now_ms)
        depends = ON_OTHERS if on_others else 0
        if not _is_settled(figures, commits, ends):
            depends |= ON_REPEATS
        self._verdicts[row] = verdict.verdict
        text = verdict.reason if growing is None else growing.text
        self._reasons[row] = sys.intern(text)  # many fare alike
        self._methods[row] = None if age is None else age.method
        self._depends[row] = depends
        _NUMBERS_OF_A_ROW.pack_into(
            self._numbers,
            row * _NUMBERS_OF_A_ROW.size,
            math.inf if age is not None and not age.seconds else since_ms,
            _or_nan(None if age is None else age.error_seconds),
            _or_nan(figures.rates and figures.rates.velocity),
            _or_nan(figures.eta_seconds),
            told_ms,
            now_ms + 1000 * holds_seconds(figures) - _ALLOWANCE_MS,
        )
        return depends

    def _row(self, partition: TopicPartition) -> int:
        row = self._rows.get(partition)
        if row is None:
            if not self._free:
                self._free.append(len(self._depends))
                self._verdicts.append("")
                self._reasons.append("")
                self._methods.append(None)
                self._numbers.extend(_NOTHING)
                self._depends.append(0)
            row = self._rows[partition] = self._free.pop()
        return row

    def remove(self, partition: TopicPartition) -> None:
        """Forget a partition's assessment, if there is one."""
        row = self._rows.pop(partition, None)
        if row is not None:
            self._numbers[row * _WIDTH : (row + 1) * _WIDTH] = array("d", _NOTHING)
            self._free.append(row)

    def unless_changed(self, partition: TopicPartition, on_what: int, now_ms: int) -> int | None:
        """Return what else changes an assessment; None if any of ``on_what`` did, or time.

        None, too, if there is no assessment.
        """
        row = self._rows.get(partition)
        if row is None or self._numbers[row * _WIDTH + _UNTIL_MS] <= now_ms:
            return None
        depends = self._depends[row]
        return None if depends & on_what else depends

    def due_ms(self) -> float:
        """Return until when (ms) time alone changes no assessment but its ages, infinity for ever."""
        return min(self._numbers[_UNTIL_MS::_WIDTH], default=math.inf)

    def retold_ms(self, now_ms: int) -> float:
        """Return until when (ms) all reasons stay as they are, infinity for ever."""
        least = math.inf
        for told_ms in self._numbers[_TOLD_MS::_WIDTH]:
            if not math.isnan(told_ms):
                left = 1000 * same_text_seconds((now_ms - told_ms) / 1000)
                least = min(least, now_ms + left - _ALLOWANCE_MS)
        return least

    def reason(self, partition: TopicPartition, now_ms: int) -> str:
        """Return the reason of an assessment, with the time in it that has grown."""
        return self._reason(self._rows[partition], now_ms)

    def _reason(self, row: int, now_ms: int) -> str:
        text, told_ms = self._reasons[row], self._numbers[row * _WIDTH + _TOLD_MS]
        return text if math.isnan(told_ms) else grown(text, (now_ms - told_ms) / 1000)

    def verdict(self, partition: TopicPartition, now_ms: int) -> Verdict:
        """Return the verdict of an assessment."""
        row = self._rows[partition]
        seconds = _or_none(_age_at(self._numbers[row * _WIDTH + _SINCE_MS], now_ms))
        return Verdict(self._verdicts[row], self._reason(row, now_ms), seconds or 0.0)

    def find(self, partition: TopicPartition, now_ms: int) -> Assessed:
        """Return an assessment with the times that it has at ``now_ms``; without one, ``AT_THE_END``."""
        row = self._rows.get(partition)
        if row is None:
            return AT_THE_END
        numbers = self._numbers[row * _WIDTH : (row + 1) * _WIDTH]
        return Assessed(
            self._verdicts[row],
            self._reason(row, now_ms),
            _or_none(_age_at(numbers[_SINCE_MS], now_ms)),
            _or_none(numbers[_ERROR]),
            self._methods[row],
            _or_none(numbers[_VELOCITY]),
            _or_none(numbers[_ETA]),
        )

    def column(
        self, measure: Measure, partitions: Sequence[TopicPartition], now_ms: int
    ) -> list[float]:
        """Return one measure of each partition, NaN where it is unknown."""
        there, numbers = self._rows.get, self._numbers
        nothing = _or_nan(getattr(AT_THE_END, measure))
        at = _NUMBERS[measure]
        rows = [there(partition, _NO_ROW) for partition in partitions]
        found = [nothing if row == _NO_ROW else numbers[row * _WIDTH + at] for row in rows]
        if measure != "lag_seconds":
            return found
        return [
            nothing if row == _NO_ROW else _age_at(since_ms, now_ms)
            for row, since_ms in zip(rows, found, strict=True)
        ]


def _since_ms(seconds: float, now_ms: int) -> float:
    """Return when a time (s) began, in ms; exactly, if it is of whole milliseconds."""
    return round(now_ms - seconds * 1000, 3)


def _age_at(since_ms: float, now_ms: int) -> float:
    """Return the age of a partition's oldest unread record (s), NaN if it is unknown."""
    return 0.0 if since_ms == math.inf else (now_ms - since_ms) / 1000


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def _is_settled(figures: LagFigures, commits: CommitHistory | None, ends: EndOffsetHistory) -> bool:
    """Return whether samples that repeat the last one leave a partition's rates as they are.

    Rates end with the last advance of the commit or, if the next one is overdue, with the last
    sample; but when both have fallen to 0, they stay there.
    """
    if commits is None or figures.interval_seconds is None or figures.lag.out_of_range:
        return True
    rates = figures.rates
    if rates is not None and not rates.consume_rate and not rates.produce_rate:
        return True
    allowed = INTERVALS_ALLOWED * figures.interval_seconds
    is_overdue = (figures.step_seconds or 0.0) > allowed
    return not is_overdue and commits.step_ms <= ends.last_ms
