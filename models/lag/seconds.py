"""Lag in seconds: for how long a group could have read the oldest record that it has yet to read.

The moment at which records came beyond the committed offset is looked up in our own samples of the
log's end, so neither the rate of the producer nor that of the consumer enters the figure. A record in a
transaction counts from when the transaction ended; before that it can't be read.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from caughtup.models.histories.end_offsets import EndOffsetHistory

Method = Literal["caught_up", "interpolated", "at_least"]


class LagSeconds(NamedTuple):
    """An age in seconds, how far it may be off, and how it was measured.

    ``caught_up``: nothing is unread as of the last sample; a record may have come since, so the
    error is the age of that sample. ``interpolated``: the record came between
    two samples, and records are taken to have come evenly between them; the truth is no further
    away than ``error_seconds``, which is never more than lies between the samples. ``at_least``:
    the record was there at the oldest sample, so it is that old or older by an unknown time, and
    ``error_seconds`` is None. Nothing is extrapolated: a rate from before
    the oldest sample is unknown.
    """

    seconds: float
    error_seconds: float | None
    method: Method

    @property
    def certain_seconds(self) -> float:
        """The least that the age can be, in seconds."""
        return max(0.0, self.seconds - (self.error_seconds or 0.0))


def lag_seconds(
    position: int, lag: int, history: EndOffsetHistory, now_ms: int
) -> LagSeconds | None:
    """Compute the age of the oldest unread record, in seconds; None if it is unknown.

    ``position`` is the offset from which the group has yet to read: its commit, or the log start
    if that is later. ``lag`` is the number of offsets it lags, as ``partition_lag`` counts them;
    with none, the age is 0 however long ago the last record came. ``now_ms`` is the clock's
    value. One sample tells nothing of a log's past.
    """
    if lag <= 0:
        return LagSeconds(0.0, max(0, now_ms - history.last_ms) / 1000, "caught_up")
    if len(history) < 2:
        return None
    before, after = history.around(position)
    if after is None:
        return None
    if before is None:
        return LagSeconds(max(0, now_ms - history.first.at_ms) / 1000, None, "at_least")
    # The records between two samples are spread evenly, each in the middle of its share of time.
    share = (position - before.readable_end + 0.5) / (after.readable_end - before.readable_end)
    elapsed = (after.at_ms - before.at_ms) * share
    error = max(elapsed, after.at_ms - before.at_ms - elapsed)
    age = max(0.0, now_ms - before.at_ms - elapsed)
    return LagSeconds(age / 1000, error / 1000, "interpolated")
