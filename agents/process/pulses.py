"""Shows which parts of the process stand still: each beats while it gets on, a watchdog counts."""

from __future__ import annotations

from collections.abc import Mapping

EVENT_LOOP, OFFSETS = "event loop", "reader of __consumer_offsets"
TOPICS_READER, PUBLISHER = "reader of own topics", "publisher"
CONNECT_READER = "reader of Connect's topics"
#: How often the watchdog ticks.
TICK_SECONDS = 0.25
#: A part that has stood still for so long, in seconds, is not healthy. An event loop's turn takes
#: milliseconds, and a reader's calls to its brokers up to ten seconds, some of them in a row.
HEALTHY_SECONDS: Mapping[str, float] = {
    EVENT_LOOP: 5.0,
    OFFSETS: 60.0,
    TOPICS_READER: 60.0,
    PUBLISHER: 15.0,
    CONNECT_READER: 60.0,
}


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

    def still_seconds(self) -> dict[str, float]:
        """Return for how long each part had stood still at the last tick, in seconds."""
        seen = self._seen
        return {part: ticks * TICK_SECONDS for part, (_, ticks) in sorted(seen.items())}

    def last_turns(self) -> list[str]:
        """Describe how long ago each part last made progress."""
        still = self.still_seconds().items()
        return [f"{part}: last turn {seconds:.2f} s ago" for part, seconds in still]

    def unhealthy(self) -> list[str]:
        """Name in sentences the parts that have stood still for too long; none if all make progress."""
        return [
            f"the {part} has stood still for {seconds:.0f} s"
            for part, seconds in self.still_seconds().items()
            if seconds >= HEALTHY_SECONDS.get(part, 0.0)
        ]
