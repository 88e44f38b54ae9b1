"""Virtual time: events happen in the order of their times, and nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

#: The default for the most events of a run: a simulation that never comes to rest ends here.
MOST_EVENTS = 5_000_000


class Event:
    """A call that is due at ``at_ms``; nothing happens then if it was cancelled."""

    __slots__ = ("_call", "at_ms")

    def __init__(self, at_ms: int, call: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Cancel the event; without effect once it happened."""
        self._call = None

    def happen(self) -> bool:
        """Make the call; return whether it was not cancelled."""
        call, self._call = self._call, None
        if call is None:
            return False
        call()
        return True


class EndlessError(Exception):
    """Too many events: the simulation is endless. The message has the virtual time."""


class VirtualTime:
    """A clock that jumps to the next event.

    Events of one moment happen in the order of their planning. ``now_ms``: milliseconds since the
    start of the simulation.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._due: list[tuple[int, int, Event]] = []
        self._planned = 0

    def at(self, at_ms: int, call: Callable[[], None]) -> Event:
        """Plan a call for a moment, or for now if that is past."""
        event = Event(max(at_ms, self.now_ms), call)
        self._planned += 1
        heappush(self._due, (event.at_ms, self._planned, event))
        return event

    def after(self, delay_ms: int, call: Callable[[], None]) -> Event:
        """Plan a call for some milliseconds from now."""
        return self.at(self.now_ms + delay_ms, call)

    def run(self, until_ms: int, most_events: int = MOST_EVENTS) -> None:
        """Run the events up to a moment, and set the clock to it. Raises EndlessError."""
        while self._due and self._due[0][0] <= until_ms:
            at_ms, _, event = heappop(self._due)
            self.now_ms = at_ms
            if event.happen():
                self.events += 1
                if self.events > most_events:
                    raise EndlessError(
                        f"{most_events:,} events until {at_ms:,} ms: the simulation does not end"
                    )
        self.now_ms = max(self.now_ms, until_ms)
