"""Burrow 1.9's rules for a partition, to show where verdicts by time differ."""

from __future__ import annotations

from itertools import pairwise

from tests.support.simulation.group import SimulatedGroup

#: The number of commits and broker offsets that it keeps by default (``intervals``).
INTERVALS = 10


def burrow_status(group: SimulatedGroup) -> str:
    """Return Burrow's status with its defaults: ``allowed-lag`` 0, ``minimum-complete`` 0."""
    window = group.committed[-INTERVALS:]
    ends = group.ends_seen[-INTERVALS:]
    offsets = [offset for offset, _, _ in window]
    lags = [lag for _, _, lag in window]
    first_ms, last_ms = window[0][1], window[-1][1]
    if ends[-1] - offsets[-1] <= 0:
        return "OK"
    if group.now - last_ms > last_ms - first_ms and all(end > offsets[-1] for end in ends):
        return "STOP"
    for index in range(2, len(offsets)):
        before = offsets[index - 1]
        if offsets[index] < before and all(later < before for later in offsets[index:]):
            return "REWIND"
    if 0 in lags:
        return "OK"
    if len(set(offsets)) == 1:
        return "STALL"
    if all(later >= earlier for earlier, later in pairwise(lags)):
        return "WARN"
    return "OK"
