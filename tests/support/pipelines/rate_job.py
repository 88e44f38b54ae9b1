"""One slot of the catch-up rates job, batch by batch, without Spark."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from caughtup.pipelines.rates.slots import (
    EndOffsetSample,
    Event,
    OutputRecord,
    PositionReport,
    Slot,
    SlotState,
)

START = 1_800_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
CHANGELOG = "orders-counts-changelog"
OTHER = "orders-sums-changelog"
COPY = ["orders", "a", "0_1"]
WINDOWS = (60, 300, 900)


def ended(at_ms: int, end: int | None, topic: str = CHANGELOG, offset: int = 0) -> EndOffsetSample:
    return EndOffsetSample(topic, 1, offset or at_ms, at_ms, end)


def reported(at_ms: int, lags: dict[str, int] | None, offset: int = 0) -> PositionReport:
    return PositionReport(*COPY, 1, offset or at_ms, at_ms, lags)


class Job:
    """A slot, its state packed and unpacked between batches, and the last outputs by key."""

    def __init__(self) -> None:
        self.saved: bytes | None = None
        self.written: dict[str, Any] = {}

    def take(self, *events: Event, before_ms: int = 0) -> list[OutputRecord]:
        slot = self._slot()
        return self._keep(slot, list(slot.apply(events, before_ms)))

    def forget(self, before_ms: int) -> list[OutputRecord]:
        slot = self._slot()
        return self._keep(slot, list(slot.forget(before_ms)))

    def rate(self, key: list[Any], seconds: int = 60) -> dict[str, Any]:
        windows = {each["seconds"]: each for each in self.written[json.dumps(key)]["windows"]}
        found: dict[str, Any] = windows[seconds]
        return found

    def _slot(self) -> Slot:
        state = msgspec.msgpack.decode(self.saved, type=SlotState) if self.saved else SlotState()
        return Slot(state, 10)

    def _keep(self, slot: Slot, written: list[OutputRecord]) -> list[OutputRecord]:
        self.saved = None if slot.state is None else msgspec.msgpack.encode(slot.state)
        for key, value in written:
            self.written[json.dumps(json.loads(key))] = value and json.loads(value)
        return written
