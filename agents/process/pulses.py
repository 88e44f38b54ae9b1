"""Find parts of the process that stand still: each part beats while it works, a watchdog counts."""

from __future__ import annotations

from collections.abc import Mapping

EVENT_LOOP, OFFSETS = "event loop", "reader of __consumer_offsets"
TOPICS_READER, PUBLISHER = "reader of own topics", "publisher"
CONNECT_READER = "reader of Connect's topics"
#: How often the watchdog ticks.
TICK_SECONDS = 0.25
#: The seconds after which a part without a beat is unhealthy. A turn of the event loop takes
#: milliseconds; a reader's calls to brokers take up to ten seconds, sometimes several in a row.
HEALTHY_SECONDS: Mapping[str, float] = {
    EVENT_LOOP: 5.0,
    OFFSETS: 60.0,
    TOPICS_READER: 60.0,
    PUBLISHER: 15.0,
    CONNECT_READER: 60.0,
}


class Pulses:
    """Counts the beats of each part, from its first one until it rests.

    Standing still is measured in the watchdog's own ticks, not in time: a process that was
    suspended and continues has not stood still. Each part beats on its own thread, the watchdog
    ticks on another.
    """

    def __init__(self) -> None:
        self._beats: dict[str, int] = {}
        #: By part: the number of beats at the last tick, and the ticks since the last new beat.
        self._seen: dict[str, tuple[int, int]] = {}

    def beat(self, part: str) -> None:
        """Count a beat of a part."""
        self._beats[part] = self._beats.get(part, 0) + 1

    def rest(self, part: str) -> None:
        """Stop watching a part until it beats again."""
        self._beats.pop(part, None)

    def tick(self) -> dict[str, int]:
        """Count a tick; return the ticks since the last beat of each part."""
        beats = self._beats.copy()
        self._seen = {
            part: (count, ticks + 1 if count == before else 0)
            for part, count in beats.items()
            for before, ticks in (self._seen.get(part, (None, 0)),)
        }
        return {part: ticks for part, (_, ticks) in self._seen.items()}

    def still_seconds(self) -> dict[str, float]:
        """Return for each part the seconds without a beat, as of the last tick."""
        seen = self._seen
        return {part: ticks * TICK_SECONDS for part, (_, ticks) in sorted(seen.items())}

    def last_turns(self) -> list[str]:
        """Describe how long ago each part last made progress."""
        still = self.still_seconds().items()
        return [f"{part}: last turn {seconds:.2f} s ago" for part, seconds in still]

    def unhealthy(self) -> list[str]:
        """List in sentences the parts that have stood still for too long."""
        return [
            f"the {part} has stood still for {seconds:.0f} s"
            for part, seconds in self.still_seconds().items()
            if seconds >= HEALTHY_SECONDS.get(part, 0.0)
        ]
