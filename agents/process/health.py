"""How the service itself is doing: ready, how far behind, which probe failed last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from caughtup.agents.process.pulses import Pulses

#: What asks Kafka, or tells it, by itself, and can fail at it.
PROBES = (
    "checkpoints",
    "connect",
    "end_offsets",
    "group",
    "lag",
    "offsets",
    "publish",
    "reassignments",
    "topics",
)

#: A reader that has no more records than these to go knows all but the last moments: it takes a
#: fraction of a second to read them, and on a busy cluster there are always some.
MOMENTS_RECORDS = 100_000


@dataclass(slots=True)
class Health:
    """Written by the readers and probes, read by ``/ready``, ``/metrics`` and the page.

    ``cluster_name``: what the operator calls the cluster; None: nobody said. ``unsafe``: what goes
    unencrypted or unverified although credentials are set, in sentences.
    ``login``: why there is no newer token for logins, None where nothing is wrong.
    ``ready``: the offsets reader has passed the end offsets seen at its start. ``broken`` says
    what broke beyond repair: from then on nothing is ready, no figure is alive, and the process
    ends. ``standby`` says why this instance isn't the active one; None once it is.
    ``doubt`` says, whenever it is asked, why another instance may be the active one by now; a
    process that was suspended is asked before any part of it has run again. ``hindrances`` say, by
    part, what keeps the service from being ready for now, and ``topic_problems`` what is wrong with
    its own topics, by topic and problem, in a sentence.
    ``reader_lag``: records of ``__consumer_offsets`` yet to be read, None before it is known.
    ``polled_ms``: when the brokers last answered the reader, for each partition of that log, and
    ``read_ms`` when all but the last moments of it were read, both in ms; None before the first.
    ``late_seconds``: by how much the event loop's turns came late, in all.
    ``probed_ms``: when each probe last succeeded, in ms. ``probe_errors``: failures by probe.
    ``web_refusals``: what the web port refused or cut off, by reason.
    ``leaderless_partitions``: without a leader at the last listing, so that their ends stand still.
    """

    cluster_name: str | None = None
    unsafe: tuple[str, ...] = ()
    login: str | None = None
    ready: bool = False
    broken: str | None = None
    standby: str | None = None
    doubt: Callable[[], str | None] = lambda: None
    hindrances: dict[str, str] = field(default_factory=dict)
    topic_problems: dict[tuple[str, str], str] = field(default_factory=dict)
    reader_lag: int | None = None
    polled_ms: int | None = None
    read_ms: int | None = None
    late_seconds: float = 0.0
    probed_ms: dict[str, int] = field(default_factory=dict)
    probe_errors: Counter[str] = field(default_factory=Counter)
    web_refusals: Counter[str] = field(default_factory=Counter)
    leaderless_partitions: int = 0
    #: By which a supervisor tells which parts stand still.
    pulses: Pulses = field(default_factory=Pulses)
    _failing: set[str] = field(default_factory=set)

    @property
    def is_alive(self) -> bool:
        """Whether figures hold: the log was read to its end, and nothing has broken since.

        On an instance that stands by they aren't told: the active one does.
        """
        return self.has_read and self.standby is None

    @property
    def has_read(self) -> bool:
        """Whether the log was read to its end, on whichever instance."""
        return self.ready and self.broken is None

    @property
    def is_active(self) -> bool:
        """Whether this is the active instance; not where another may be by now."""
        return self.standby is None and self.doubt() is None

    def hinder(self, part: str, why: str | None) -> None:
        """Note what keeps a part from being ready, None once nothing does."""
        if why is None:
            self.hindrances.pop(part, None)
        else:
            self.hindrances[part] = why

    def unhealthy(self) -> list[str]:
        """List in sentences why the process isn't worth keeping; none if it is."""
        if self.broken is not None:
            return [f"broken: {self.broken}"]
        return self.pulses.unhealthy()

    def unready(self, *, may_stand_by: bool = False) -> list[str]:
        """List in sentences why the service is not ready; none if it is.

        ``may_stand_by``: that another instance is the active one is no reason.
        """
        if self.broken is not None:
            return [f"broken: {self.broken}"]
        stands_by = self.standby is not None and not may_stand_by
        reasons = [f"standby: {self.standby}"] if stands_by else []
        if (doubt := self.doubt()) is not None:
            reasons.append(f"group: {doubt}")
        reasons += [f"{part}: {why}" for part, why in sorted(self.hindrances.items())]
        if not self.ready:
            left = (
                ""
                if self.reader_lag is None
                else f": {self.reader_lag} records of __consumer_offsets to go"
            )
            reasons.append(f"catching up{left}")
        return reasons

    def notices(self) -> list[str]:
        """List in sentences what is wrong and doesn't keep the service from being ready."""
        return [
            *(f"security: {what}" for what in self.unsafe),
            *(() if self.login is None else (f"login: {self.login}",)),
            *(f"{topic}: {why}" for (topic, _), why in sorted(self.topic_problems.items())),
        ]

    def polled(self, at_ms: int | None, reader_lag: int) -> None:
        """Note how far the reader has come, and when the brokers last answered it (ms).

        None while some haven't answered yet, as after a new connection: what was known stays.
        """
        self.reader_lag = reader_lag
        if at_ms is None:
            return
        self.polled_ms = at_ms
        if reader_lag <= MOMENTS_RECORDS:
            self.read_ms = at_ms

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
