"""The restorations of a Kafka Streams instance, as its own listeners report them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from caughtup.pipelines.java.compiling import compiled_java

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

_SOURCE = Path(__file__).parent / "java" / "RestoreListener.java"


class RestoredCopy(NamedTuple):
    """A copy of a store's partition that an instance started to restore.

    ``role``: active or standby (warm-ups are standbys). Offsets are of the changelog: ``start``, 0
    if nothing was on disk; ``end``, the end offset at that time, None for a standby without a
    record; ``loaded``, the last one loaded. ``reached_ms``: when all before ``end`` was loaded.
    ``ending``: RESTORED or SUSPENDED for an active, PROMOTED or MIGRATED for a standby, empty while
    it goes on.

    Source: StateRestoreListener, and StandbyUpdateListener (KIP-988).
    """

    role: str
    store: str
    changelog: str
    partition: int
    start: int
    end: int | None
    loaded: int | None
    started_ms: int
    reached_ms: int | None
    ending: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Parse a line of the listener."""
        role, store, changelog, partition, *numbers, ending = line.split("\t")
        start, end, loaded, started_ms, reached_ms = map(int, numbers)
        return cls(
            role,
            store,
            changelog,
            int(partition),
            start,
            _known(end),
            _known(loaded),
            started_ms,
            _known(reached_ms),
            ending,
        )

    @property
    def from_nothing(self) -> bool:
        """Whether a copy of something was built where nothing was on disk."""
        return self.start == 0 and bool(self.end)

    @property
    def behind(self) -> int:
        """How many offsets were to be restored when it began."""
        return max((self.end or 0) - self.start, 0)


def compiled_restore_listener() -> Path:
    """Return the directory of the listener's classes. Raises as ``compiled_java`` does."""
    return compiled_java("restore-listener", [_SOURCE])


def listen(java: JVMView, streams: JavaObject) -> JavaObject:
    """Set a listener of restores on a KafkaStreams in a py4j gateway's JVM, and return it.

    Before it is started: a running one takes none.
    """
    listener = java.caughtup.demo.RestoreListener()
    streams.setGlobalStateRestoreListener(listener)
    streams.setStandbyUpdateListener(listener)
    return listener


def restored_copies(listener: JavaObject) -> tuple[RestoredCopy, ...]:
    """Ask a listener for every copy so far, in the order in which they were started."""
    return tuple(RestoredCopy.parse(line) for line in str(listener.lines()).splitlines())


def _known(number: int) -> int | None:
    return None if number < 0 else number
