"""How the service itself is doing: ready, how far behind, which probe failed last."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

#: What asks Kafka, or tells it, by itself, and can fail at it.
PROBES = ("end_offsets", "lag", "offsets", "reassignments")


@dataclass(slots=True)
class Health:
    """Written by the readers and probes, read by ``/ready``, ``/metrics`` and the page.

    ``ready``: the offsets reader has passed the end offsets seen at its start.
    ``reader_lag``: records of ``__consumer_offsets`` yet to be read, None before it is known.
    ``probed_ms``: when each probe last succeeded, in ms. ``probe_errors``: failures by probe.
    """

    ready: bool = False
    reader_lag: int | None = None
    probed_ms: dict[str, int] = field(default_factory=dict)
    probe_errors: Counter[str] = field(default_factory=Counter)
    _failing: set[str] = field(default_factory=set)

    def succeeded(self, probe: str, now_ms: int) -> None:
        """Note that a probe went through."""
        self.probed_ms[probe] = now_ms
        self.recovered(probe)

    def recovered(self, probe: str) -> None:
        """Note that a probe fails no longer, where it goes by no clock."""
        self._failing.discard(probe)

    def failed(self, probe: str) -> bool:
        """Note that a probe failed, and tell whether that is news: the last one had not.

        What the probe last saw stays, and grows old.
        """
        self.probe_errors[probe] += 1
        news = probe not in self._failing
        self._failing.add(probe)
        return news
