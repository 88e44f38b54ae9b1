"""Log failures and refused records with a limit on each kind of line."""

from __future__ import annotations

import logging

from caughtup.agents.clock import now_ms
from caughtup.models.faults import Fault, Refusal, SetAside
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

_MINUTE_MS = 60_000


class RateLimit:
    """A limit on the log lines of one kind a minute."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._minute = -1
        self._count = 0

    def is_exceeded(self, now: int) -> bool:
        """Count one more line at time ``now`` (ms); return whether it exceeds the limit."""
        minute = now // 60_000
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count > self._a_minute


class LogLimit:
    """Allows one log line a minute of each kind. There are few kinds."""

    def __init__(self) -> None:
        #: By kind: when it was last logged (ms), and the number of lines left out since.
        self._logged: dict[tuple[str, ...], tuple[int, int]] = {}

    def more(self, *kind: str) -> str | None:
        """Return a suffix with the number of lines left out; None if the line is to be left out."""
        now = now_ms()
        last_ms, unlogged = self._logged.get(kind, (0, 0))
        if 0 <= now - last_ms < _MINUTE_MS:
            self._logged[kind] = (last_ms, unlogged + 1)
            return None
        self._logged[kind] = (now, 0)
        return f" ({unlogged} more like it since the last line)" if unlogged else ""


class FaultLog:
    """Logs faults, refused records and those set aside: of each kind the first in a minute."""

    def __init__(self) -> None:
        self._due = LogLimit()

    def attach(self, state: ClusterState) -> None:
        """Log the faults and refusals that the state counts from now on."""
        state.faults.on_fault = self.fault
        state.refused.on_refusal = self.refusal
        state.set_aside.on_set_aside = self.set_aside

    def fault(self, fault: Fault, error: Exception) -> None:
        """Log a fault with its traceback: it is a bug of ours, and only its subject is affected."""
        more = self._due.more("fault", fault.part, fault.cause)
        if more is not None:
            log.error(
                "%s of %r failed%s; continuing", fault.part, fault.subject, more, exc_info=error
            )

    def refusal(self, refusal: Refusal) -> None:
        """Log a refused record."""
        more = self._due.more("refusal", refusal.topic, refusal.reason)
        if more is not None:
            log.warning(
                "refused a record of %s, key %r: %s: %s%s",
                refusal.topic,
                refusal.key,
                refusal.reason,
                refusal.message,
                more,
            )

    def set_aside(self, aside: SetAside) -> None:
        """Log a record of ours that no broker accepts."""
        more = self._due.more("set aside", aside.topic, aside.reason)
        if more is not None:
            log.warning(
                "set aside a record for %s, key %r: %s: %s%s",
                aside.topic,
                aside.key,
                aside.reason,
                aside.message,
                more,
            )
