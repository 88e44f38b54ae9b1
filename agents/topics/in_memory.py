"""Own topics that are not on the cluster: in memory, and in a file if one is set.

It is for clusters on which the service may create no topics. Whatever reads an own topic gets what
this instance writes, and nothing of applications, Spark's jobs or other instances. The file has the
last record of each key, and the events of a day: with it a restart knows what was recommended and
learned, and does not say it again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Container, Mapping
from pathlib import Path

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.agents.topics.definitions import topic_name
from caughtup.agents.topics.publisher import Acknowledged, Headers, Record, TopicWriter
from caughtup.agents.topics.reader import Slice
from caughtup.agents.topics.restoration import Published, apply_published
from caughtup.models.records.topics import END_OFFSETS, LEARNED_CONFIGS, MOVEMENTS, RECOMMENDATIONS
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "publish"
#: The topics in the file with the last record of each key, and that with the events of a day.
_KEPT, _EVENTS = frozenset({END_OFFSETS, LEARNED_CONFIGS, RECOMMENDATIONS}), MOVEMENTS
_EVENTS_MS = 86_400_000
#: The most events that wait while the file can't be written.
_MOST_EVENTS = 10_000
_WRITE_SECONDS = 1.0
_SCHEMA = """
create table if not exists latest (
    topic text, key blob, value blob, at_ms integer, primary key (topic, key)
) without rowid;
create table if not exists about (cluster text);
create table if not exists events (topic text, key blob, value blob, at_ms integer);
"""
#: SQLite lets a program write anything to any column: what this one has not written is left out.
_OURS = (
    f"topic in ({', '.join(repr(topic) for topic in sorted({*_KEPT, _EVENTS}))}) and "
    "typeof(key) = 'blob' and typeof(value) in ('blob', 'null') and typeof(at_ms) = 'integer'"
)
_ONLY_OURS = 0o600
#: How long another process's lock on the file is waited for: one that stops lets go of it.
_LOCK_SECONDS = 5.0
#: A topic, a key, a value and the time (ms).
_Row = tuple[str, bytes, bytes | None, int]


class InMemoryTopics(Service):
    """Takes the place of a Publisher: gives the records of each topic to the topic's channel.

    ``channels``: by topic, without prefix. Raises UserError when the file can't be read.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        channels: Mapping[str, KeptChannel[Slice]],
    ) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._state = state
        self._names = {topic_name(settings, name): name for name in (*channels, *_KEPT, _EVENTS)}
        self._channels = channels
        self._file = (
            None if settings.state_file is None else RecordFile(settings.state_file, state.cluster)
        )
        self._unwritten: list[_Row] = []
        self._writing = asyncio.Lock()

    def topic(self, name: str) -> TopicWriter:
        """Return a writer for one of the service's own topics (name without prefix)."""
        return TopicWriter(self, topic_name(self._settings, name), None)

    async def on_start(self) -> None:
        """Restore what the file has."""
        if self._file is None:
            return
        rows = await asyncio.to_thread(self._file.read, now_ms() - _EVENTS_MS)
        by_topic: dict[str, list[_Row]] = {}
        for row in rows:
            by_topic.setdefault(row[0], []).append(row)

        def records(topic: str) -> list[Record]:
            return [(key, value) for _, key, value, _ in by_topic.get(topic, ())]

        await apply_published(
            self._state,
            Published(records(LEARNED_CONFIGS), records(RECOMMENDATIONS), records(MOVEMENTS)),
        )
        ends = [
            ConsumerRecord(key, value, at_ms)
            for _, key, value, at_ms in by_topic.get(END_OFFSETS, ())
        ]
        if ends:
            await self._channels[END_OFFSETS].put(ends)

    async def on_stop(self) -> None:
        """Write what is not in the file yet."""
        await self._write()
        if self._file is not None:
            await asyncio.to_thread(self._file.close)

    async def flush(self) -> None:
        """Wait until everything is in the file."""
        await self._write()

    async def send(
        self, topic: str, key: bytes, value: bytes | None, headers: Headers = None
    ) -> Acknowledged:
        """Give a record to the topic's reader; the future is done."""
        del headers
        name, at_ms = self._names.get(topic, topic), now_ms()
        if (channel := self._channels.get(name)) is not None:
            await channel.put([ConsumerRecord(key, value, at_ms)])
        if self._file is not None and (name in _KEPT or name == _EVENTS):
            self._unwritten.append((name, key, value, at_ms))
        acknowledged: Acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.set_result(None)
        return acknowledged

    async def written(
        self, topic: str, sought: Container[Record], since_ms: int
    ) -> frozenset[Record]:
        """Return nothing: each record is taken when it is sent, so none is ever sought."""
        del topic, sought, since_ms
        return frozenset()

    def replace_client(self) -> None:
        """Do nothing: there is no client."""

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop and self._file is not None:
            await self.sleep(_WRITE_SECONDS)
            await self._write()

    async def _write(self) -> None:
        """Write what has come since the last call; what fails is tried again."""
        if self._file is None or not self._unwritten:
            return
        async with self._writing:
            await self._write_to(self._file)

    async def _write_to(self, file: RecordFile) -> None:
        rows, self._unwritten = self._unwritten, []
        try:
            await asyncio.to_thread(file.write, rows, now_ms() - _EVENTS_MS)
        except sqlite3.Error as error:
            # What waits stays bounded: of a key the newest record is enough.
            newest = {row[:2]: row for row in rows if row[0] != _EVENTS}
            events = [row for row in rows if row[0] == _EVENTS][-_MOST_EVENTS:]
            self._unwritten = [*newest.values(), *events, *self._unwritten]
            if self._health.failed(PROBE):
                log.warning("writing %s: %s", self._settings.state_file, error)
        else:
            self._health.recovered(PROBE)


class RecordFile:
    """A file with records, an SQLite database. It is used by one thread at a time."""

    def __init__(self, path: Path, cluster: str) -> None:
        """Open or create the file of a cluster (its id). Raises UserError."""
        self._path = path
        self._database: sqlite3.Connection | None = None
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, _ONLY_OURS))
            self._database = sqlite3.connect(path, _LOCK_SECONDS, check_same_thread=False)
            # Its lock is held until it is closed, or the process ends.
            self._database.executescript(
                f"pragma locking_mode = exclusive; pragma journal_mode = wal; {_SCHEMA}"
            )
            for table in ("latest", "events"):  # other programs' tables may have these names
                self._database.execute(f"select topic, key, value, at_ms from {table} limit 0")
            other = self._of_cluster(cluster)
        except OSError as error:
            raise UserError(f"setting state_file: {path}: {error.strerror}") from None
        except sqlite3.Error as error:
            self.close()
            raise UserError(f"setting state_file: {path}{_explained(error)}") from None
        if other is not None:
            self.close()
            raise UserError(
                f"setting state_file: {path} is about the cluster {other}, and this is {cluster}: "
                "name another file for it"
            )

    def _of_cluster(self, cluster: str) -> str | None:
        """Return the id of another cluster that the file is about; None if it is about this one."""
        rows = self._open.execute("select cluster from about").fetchall()
        if not rows:
            with self._open:
                self._open.execute("insert into about values (?)", (cluster,))
        return next((str(other) for (other,) in rows if other != cluster), None)

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._database is not None
        return self._database

    def read(self, events_since_ms: int) -> list[_Row]:
        """Return the last record of each key, and the events since a time (ms), in order.

        Raises UserError if the file is damaged.
        """
        try:
            latest = self._open.execute(
                f"select topic, key, value, at_ms from latest where {_OURS} order by at_ms, topic, key"
            ).fetchall()
            events = self._open.execute(
                "select topic, key, value, at_ms from events "
                f"where {_OURS} and at_ms >= ? order by rowid",
                (events_since_ms,),
            ).fetchall()
        except sqlite3.Error as error:
            raise UserError(f"setting state_file: {self._path}{_explained(error)}") from None
        return latest + events

    def write(self, rows: list[_Row], events_since_ms: int) -> None:
        """Write records in one transaction; drop those that a tombstone removes, and old events."""
        latest = {(topic, key): (topic, key, value, at_ms) for topic, key, value, at_ms in rows}
        kept = [row for row in latest.values() if row[0] != _EVENTS]
        with self._open:
            self._open.executemany(
                "insert or replace into latest values (?, ?, ?, ?)",
                [row for row in kept if row[2] is not None],
            )
            self._open.executemany(
                "delete from latest where topic = ? and key = ?",
                [row[:2] for row in kept if row[2] is None],
            )
            self._open.executemany(
                "insert into events values (?, ?, ?, ?)", [row for row in rows if row[0] == _EVENTS]
            )
            self._open.execute("delete from events where at_ms < ?", (events_since_ms,))

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()


def _explained(error: sqlite3.Error) -> str:
    """Return why the file can't be used, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return " is in use by another process: each instance needs a file of its own"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT):
        return f" is not a file of caughtup's ({error}): name another one, or move it away"
    return f": {error}"
