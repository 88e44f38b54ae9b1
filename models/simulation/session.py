"""A member's session with its coordinator: when it was heard, and when it is given up."""

from __future__ import annotations

from collections.abc import Callable

from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.virtual_time import Event, VirtualTime


class Session:
    """A session, which lasts as long as its member is heard.

    ``heard_ms`` is when it was last sure to be heard; heartbeats follow from there, each interval.
    They don't happen here: only that they cease is told.
    """

    def __init__(self, time: VirtualTime, timings: Timings) -> None:
        self._time = time
        self._timings = timings
        self._expiry: Event | None = None
        self.heard_ms = time.now_ms

    def hear(self) -> None:
        """Note that the member is heard now."""
        self.heard_ms = self._time.now_ms

    def falls_silent(self, expired: Callable[[], None]) -> None:
        """Call ``expired`` a session timeout after the last heartbeat: there is no further one."""
        self.end()
        interval = self._timings.heartbeat_interval_ms
        beats = (self._time.now_ms - self.heard_ms) // interval
        last_ms = self.heard_ms + beats * interval
        self._expiry = self._time.at(last_ms + self._timings.session_timeout_ms, expired)

    def speaks_again(self) -> None:
        """Go on: the member was silent, and not given up."""
        self.end()
        self.hear()

    def end(self) -> None:
        """Wait for the member no longer, if that was begun."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
