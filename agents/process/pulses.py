"""Shows which parts of the process stand still: each beats while it gets on, a watchdog counts."""

from __future__ import annotations

EVENT_LOOP, OFFSETS = "event loop", "reader of __consumer_offsets"
TOPICS_READER, PUBLISHER = "reader of own topics", "publisher"
CONNECT_READER = "reader of Connect's topics"


class Pulses:
    """The beats of each part, from its first one until it rests.

    What counts is the watchdog's own ticks, not the time: a process that was suspended and goes on
    hasn't stood still. A part beats on its own thread, the watchdog ticks on another.
    """

    def __init__(self) -> None:
        self._beats: dict[str, int] = {}
        #: By part, its beats as they were at the last tick, and the ticks since there was a new one.
        self._seen: dict[str, tuple[int, int]] = {}

    def beat(self, part: str) -> None:
        """Note that a part gets on."""
        self._beats[part] = self._beats.get(part, 0) + 1

    def rest(self, part: str) -> None:
        """Watch a part no longer, until it beats again."""
        self._beats.pop(part, None)

    def tick(self) -> dict[str, int]:
        """Return for each part how many ticks have gone by without a beat, this one included."""
        beats = self._beats.copy()
        self._seen = {
            part: (count, ticks + 1 if count == before else 0)
            for part, count in beats.items()
            for before, ticks in (self._seen.get(part, (None, 0)),)
        }
        return {part: ticks for part, (_, ticks) in self._seen.items()}
