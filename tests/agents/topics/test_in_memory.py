"""Own topics in memory: what is written is read, and what the file has comes back after a restart."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import faust
import pytest

from caughtup.agents.errors import UserError
from caughtup.agents.kept_channel import KeptChannel, kept_channel
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics import in_memory
from caughtup.agents.topics.in_memory import InMemoryTopics, RecordFile
from caughtup.agents.topics.reader import Slice
from caughtup.models.ids import TopicPartition
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.topics import (
    END_OFFSETS,
    LAG,
    LEARNED_CONFIGS,
    MOVEMENTS,
    RECOMMENDATIONS,
)
from caughtup.models.state.cluster import ClusterState
from tests.support.small_disk import small_disk

ORDERS = encode_partition(TopicPartition("orders", 0))


@pytest.fixture
def end_offsets() -> KeptChannel[Slice]:
    return kept_channel(faust.App("test", store="memory://", web_enabled=False))


def topics(
    end_offsets: KeptChannel[Slice], path: Path | None = None, health: Health | None = None
) -> InMemoryTopics:
    settings = Settings(own_topics=False, state_file=path)
    state, channels = ClusterState("c", {}), {END_OFFSETS: end_offsets}
    return InMemoryTopics(settings, health or Health(), state, channels)


async def test_what_is_written_is_read(end_offsets: KeptChannel[Slice]) -> None:
    made = topics(end_offsets)
    acknowledged = await made.topic(END_OFFSETS).send(key=ORDERS, value=b"1")
    assert acknowledged.done()
    (record,) = await end_offsets.queue.get()
    assert (record.key, record.value) == (ORDERS, b"1")
    assert (await made.topic(LAG).send(key=b"k", value=b"v")).done(), "no one reads it"


async def test_the_file_has_the_last_of_each_key_and_the_events(
    end_offsets: KeptChannel[Slice], tmp_path: Path
) -> None:
    path = tmp_path / "state.db"
    async with topics(end_offsets, path) as made:
        for value in (b"1", b"2"):
            await made.topic(END_OFFSETS).send(key=ORDERS, value=value)
            await made.topic(MOVEMENTS).send(key=b"g", value=value)
        await made.topic(RECOMMENDATIONS).send(key=b"gone", value=b"1")
        await made.topic(RECOMMENDATIONS).send(key=b"gone", value=None)
        await made.topic(LAG).send(key=b"k", value=b"v")
    assert path.stat().st_mode & 0o077 == 0, "only its owner may read it"
    kept = RecordFile(path, "c")
    assert [row[:3] for row in kept.read(0)] == [
        (END_OFFSETS, ORDERS, b"2"),
        (MOVEMENTS, b"g", b"1"),
        (MOVEMENTS, b"g", b"2"),
    ]
    assert [row[0] for row in kept.read(1 << 62)] == [END_OFFSETS], "old events are left out"
    kept.close()
    while not end_offsets.queue.empty():
        end_offsets.queue.get_nowait()
    async with topics(end_offsets, path):
        (record,) = await end_offsets.queue.get()
        assert (record.key, record.value) == (ORDERS, b"2")


async def test_a_full_disk_is_counted_and_written_later(
    end_offsets: KeptChannel[Slice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    health, path = Health(), tmp_path / "state.db"
    async with topics(end_offsets, path, health) as made:
        write = RecordFile.write

        def full(*_: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(RecordFile, "write", full)
        await made.topic(END_OFFSETS).send(key=ORDERS, value=b"1")
        await made.flush()
        assert health.probe_errors["publish"] == 1
        monkeypatch.setattr(RecordFile, "write", write)
        await made.topic(END_OFFSETS).send(key=ORDERS, value=b"2")
    kept = RecordFile(path, "c")
    assert [row[2] for row in kept.read(0)] == [b"2"]
    kept.close()


@pytest.mark.parametrize("content", [b"not a database" * 100, None])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "state.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(UserError, match="state_file"):
        RecordFile(path, "c")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        RecordFile(tmp_path / "absent" / "state.db", "c")


def test_a_database_of_something_else_is_named_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("create table latest (something text)")
    with pytest.raises(UserError, match="is not a file of caughtup's"):
        RecordFile(path, "c")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("select something from latest").fetchall() == []


def test_a_full_disk_at_the_start_is_no_other_programs_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 16) as folder:
        filler = folder / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        with pytest.raises(UserError, match="state_file") as said:
            RecordFile(folder / "state.db", "c")
    assert "is not a file" not in said.value.message


def test_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "_LOCK_SECONDS", 0.1)
    first = RecordFile(tmp_path / "state.db", "c")
    with pytest.raises(UserError, match="is in use by another process"):
        RecordFile(tmp_path / "state.db", "c")
    first.write([(RECOMMENDATIONS, b"k", b"v", 1)], 0)
    first.close()
    second = RecordFile(tmp_path / "state.db", "c")
    assert len(second.read(0)) == 1
    second.close()


def test_a_file_is_about_one_cluster(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    RecordFile(path, "c").close()
    with pytest.raises(UserError, match="is about the cluster c, and this is d"):
        RecordFile(path, "d")
    RecordFile(path, "c").close()


async def test_what_another_program_wrote_to_the_file_costs_itself(
    end_offsets: KeptChannel[Slice], tmp_path: Path
) -> None:
    path, kept = tmp_path / "state.db", (END_OFFSETS, RECOMMENDATIONS, LEARNED_CONFIGS, MOVEMENTS)
    async with topics(end_offsets, path) as made:
        await made.topic(END_OFFSETS).send(key=ORDERS, value=b"1")
        await made.topic(MOVEMENTS).send(key=b"g", value=b"1")
    with closing(sqlite3.connect(path)) as other, other:
        for topic in (*kept, "another", 5, None, b"\xff"):
            for key, value in ((b"", b"garbage"), (b"\xff", b"\xff"), ("k", "v"), (1, 2.5)):
                for table in ("latest", "events"):
                    if topic is not None or table == "events":
                        row = (topic, key, value, 1 << 50)
                        other.execute(f"insert or replace into {table} values (?, ?, ?, ?)", row)
                other.execute("insert into events values (?, null, null, 'now')", (topic,))
        other.execute("insert into events values (cast(x'ff' as text), x'00', x'00', 1)")
    while not end_offsets.queue.empty():
        end_offsets.queue.get_nowait()
    async with topics(end_offsets, path):
        found = await end_offsets.queue.get()
    assert (ORDERS, b"1") in [(record.key, record.value) for record in found]
    assert all(isinstance(record.key, bytes) for record in found)


async def test_a_damaged_file_is_named(end_offsets: KeptChannel[Slice], tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    file = RecordFile(path, "c")
    file.write([(RECOMMENDATIONS, b"%d" % one, bytes(500), 1) for one in range(1_000)], 0)
    file.close()
    content = bytearray(path.read_bytes())
    content[8_192:] = b"\xa5" * (len(content) - 8_192)
    path.write_bytes(content)
    with pytest.raises(UserError, match="setting state_file: "):
        async with topics(end_offsets, path):
            pass
