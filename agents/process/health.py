"""The health of the service: ready or why not, failed probes, and parts that stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
        self._counted: dict[str, tuple[int, int]] = {}

    def beat(self, part: str) -> None:
        """Count a beat of a part."""
        self._beats[part] = self._beats.get(part, 0) + 1

    def rest(self, part: str) -> None:
        """Stop watching a part until it beats again."""
        self._beats.pop(part, None)

    def tick(self) -> dict[str, int]:
        """Count a tick; return the ticks since the last beat of each part."""
        beats = self._beats.copy()
        self._counted = {
            part: (count, ticks + 1 if count == before else 0)
            for part, count in beats.items()
            for before, ticks in (self._counted.get(part, (None, 0)),)
        }
        return {part: ticks for part, (_, ticks) in self._counted.items()}

    def still_seconds(self) -> dict[str, float]:
        """Return for each part the seconds without a beat, as of the last tick."""
        ticks_by_part = self._counted
        return {part: ticks * TICK_SECONDS for part, (_, ticks) in sorted(ticks_by_part.items())}

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


#: The one that sends metrics elsewhere.
OTLP = "otlp"
#: The name of the probe of end offsets among ``probed_ms``.
END_OFFSETS = "end_offsets"
#: The reader of groups and commits, and what asks about share groups where the others are in the log.
OFFSETS_PROBE, SHARE_GROUPS = "offsets", "share_groups"
#: The parts that send requests by themselves, and can fail.
PROBES = (
    "assignors",
    "checkpoints",
    "connect",
    "end_offsets",
    "group",
    "lag",
    OFFSETS_PROBE,
    OTLP,
    "publish",
    "reassignments",
    "rebalances",
    SHARE_GROUPS,
    "topics",
    "transactions",
)

#: A reader with at most this many unread records counts as current: it reads them in a fraction of
#: a second, and on a busy cluster there are always some.
MOMENTS_RECORDS = 100_000


@dataclass(slots=True)
class Health:
    """Written by the readers and probes, read by ``/ready``, ``/metrics`` and the page.

    - ``cluster_name``: the operator's name for the cluster; None if not set.
    - ``unsafe``: what is unencrypted or unverified although credentials are set, in sentences.
    - ``login``: why there is no newer token for logins; None if nothing is wrong.
    - ``memory``: that the process nears its memory limit; None while it doesn't.
    - ``settings``: which other instances have other settings; None if none has.
    - ``unfenced``: why brokers would take late records of an instance that was replaced; None if
      they refuse them.
    - ``shares``: which instance has how many of the partitions of ``__consumer_offsets``; None if
      one has all.
    - ``source``: what is known less well since coordinators are asked about groups; None if their log
      is read.
    - ``ready``: the offsets reader has passed the end offsets that it saw at its start.
    - ``broken``: what failed beyond repair. Then the service is not ready, its figures do not
      count, and the process ends.
    - ``standby``: why this instance is not the active one; None once it is.
    - ``doubt``: returns why another instance may be active now, or None. It is a function, since a
      process that was suspended must know before any part of it has run again.
    - ``cluster_wide``: returns whether this instance does the work that is about no group: it watches
      reassignments and maintains own topics. With shared work, one of the instances does.
    - ``hindrances``: by part, what keeps the service from being ready at present.
    - ``topic_problems``: what is wrong with its own topics, in a sentence, by topic and problem.
    - ``reader_lag``: unread records of ``__consumer_offsets``; None before it is known.
    - ``polled_ms``: the time of the oldest of the partitions' last answers to the reader, and
      ``read_ms`` the last such time at which the reader was current; None before the first.
    - ``late_seconds``: the total delay of the event loop's turns.
    - ``probed_ms``: when each probe last succeeded, in ms. ``probe_errors``: failures by probe.
    - ``rebalance_requests``: the requests by which rebalances are looked for, and end offsets are
      listed meanwhile.
    - ``ask_requests``: the requests by which coordinators are asked about groups, and
      ``ask_seconds``: how long the last round of them took; ``throttled_seconds``: for how long brokers
      made the service wait for these, by their quotas.
    - ``web_refusals``: what the web port refused or cut off, by reason.
    - ``leaderless_partitions``: partitions without a leader at the last listing of end offsets.
    """

    cluster_name: str | None = None
    unsafe: tuple[str, ...] = ()
    login: str | None = None
    memory: str | None = None
    settings: str | None = None
    unfenced: str | None = None
    shares: str | None = None
    source: str | None = None
    ready: bool = False
    broken: str | None = None
    standby: str | None = None
    doubt: Callable[[], str | None] = lambda: None
    cluster_wide: Callable[[], bool] = lambda: True
    hindrances: dict[str, str] = field(default_factory=dict)
    topic_problems: dict[tuple[str, str], str] = field(default_factory=dict)
    reader_lag: int | None = None
    polled_ms: int | None = None
    read_ms: int | None = None
    late_seconds: float = 0.0
    probed_ms: dict[str, int] = field(default_factory=dict)
    probe_errors: Counter[str] = field(default_factory=Counter)
    rebalance_requests: int = 0
    ask_requests: int = 0
    ask_seconds: float | None = None
    throttled_seconds: float = 0.0
    web_refusals: Counter[str] = field(default_factory=Counter)
    leaderless_partitions: int = 0
    #: The supervisor reads these to find parts that hang.
    pulses: Pulses = field(default_factory=Pulses)
    _failing: set[str] = field(default_factory=set)

    @property
    def is_alive(self) -> bool:
        """Whether figures count: the log was read to its end, and nothing has broken since.

        False on an instance that stands by: the active one shows the figures.
        """
        return self.has_read and self.standby is None

    @property
    def has_read(self) -> bool:
        """Whether the log was read to its end, active or not, and nothing has broken since."""
        return self.ready and self.broken is None

    @property
    def is_active(self) -> bool:
        """Whether this is the active instance; False if another one may be."""
        return self.standby is None and self.doubt() is None

    def hinder(self, part: str, why: str | None) -> None:
        """Record why a part is not ready; None once it is."""
        if why is None:
            self.hindrances.pop(part, None)
        else:
            self.hindrances[part] = why

    def unhealthy(self) -> list[str]:
        """List in sentences why the process should be restarted; empty if it should not."""
        if self.broken is not None:
            return [f"broken: {self.broken}"]
        return self.pulses.unhealthy()

    def unready(self, *, may_stand_by: bool = False) -> list[str]:
        """List in sentences why the service is not ready; empty if it is.

        ``may_stand_by``: do not count it as a reason that another instance is active.
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
        """List in sentences what is wrong but does not make the service unready."""
        return [
            *(f"security: {what}" for what in self.unsafe),
            *(() if self.login is None else (f"login: {self.login}",)),
            *(() if self.memory is None else (f"memory: {self.memory}",)),
            *(() if self.settings is None else (f"settings: {self.settings}",)),
            *(() if self.unfenced is None else (f"fence: {self.unfenced}",)),
            *(() if self.shares is None else (f"shares: {self.shares}",)),
            *(() if self.source is None else (f"source: {self.source}",)),
            *(f"{topic}: {why}" for (topic, _), why in sorted(self.topic_problems.items())),
        ]

    def polled(self, at_ms: int | None, reader_lag: int) -> None:
        """Record the reader's lag (records), and the time of the brokers' last answers (ms).

        ``at_ms`` is None while some partitions have no answer yet, as after a new connection: then
        the times stay as they are.
        """
        self.reader_lag = reader_lag
        if at_ms is None:
            return
        self.polled_ms = at_ms
        if reader_lag <= MOMENTS_RECORDS:
            self.read_ms = at_ms

    @property
    def figures_ms(self) -> int | None:
        """As of when figures are (ms): the earlier of the log of groups and the end offsets."""
        known = (self.polled_ms, self.probed_ms.get(END_OFFSETS))
        return min((at_ms for at_ms in known if at_ms is not None), default=None)

    def succeeded(self, probe: str, now_ms: int) -> None:
        """Record that a probe succeeded at ``now_ms``."""
        self.probed_ms[probe] = now_ms
        self.recovered(probe)

    def recovered(self, probe: str) -> None:
        """Record that a probe no longer fails, without a time of success."""
        self._failing.discard(probe)

    def failed(self, probe: str) -> bool:
        """Record that a probe failed; return whether its last attempt had succeeded.

        The data of its last success stay, and get old.
        """
        self.probe_errors[probe] += 1
        is_first = probe not in self._failing
        self._failing.add(probe)
        return is_first
