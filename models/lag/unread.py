"""What a verdict is worth while commits aren't read yet: those that would change it may be there."""

from __future__ import annotations

from caughtup.models.lag.figures import LagFigures
from caughtup.models.lag.verdict import Verdict

#: Commits are always read a little late. When the reader is later than the first of these (ms),
#: commits that it hasn't read yet look missing; beyond the second, no group is blamed for that.
UNREAD_MOMENTS_MS = 2_000
UNREAD_ALLOWED_MS = 30_000
#: The verdicts that follow from missing or slow commits.
_BY_MISSING_COMMITS = frozenset({"slow", "diverging", "stalled", "stopped"})


def unless_unread(
    verdict: Verdict, figures: LagFigures, unread_ms: int, allowed_ms: int = UNREAD_ALLOWED_MS
) -> Verdict:
    """Return the verdict, or ``unknown`` if commits that weren't read yet could change it.

    Until ``allowed_ms``, a verdict stays that would hold at the time of the last read.
    """
    if unread_ms <= UNREAD_MOMENTS_MS or verdict.verdict not in _BY_MISSING_COMMITS:
        return verdict
    unread, held = unread_ms / 1000, verdict.behind_seconds
    if verdict.verdict in ("stopped", "stalled"):
        held = figures.unmoved_seconds
    if verdict.verdict == "stopped" and figures.silent_seconds is not None:
        held = min(held, figures.silent_seconds)
    if unread_ms <= allowed_ms and held - unread > figures.allowed_seconds:
        return verdict
    reason = f"the service has read no commits for {unread:.0f} s, so this may not hold"
    return Verdict("unknown", f"{reason}: {verdict.reason}", verdict.behind_seconds)
