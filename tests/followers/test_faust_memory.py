"""Tables in memory keep what a worker stands by for, and know how far it is."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import faust
import pytest
from faust.events import Event
from faust.streams import _current_event
from faust.types import TP
from faust.types.tuples import Message

import caughtup.followers.faust
from caughtup.followers.python.faust.memory import MemoryStore

LOG = "orders-counts-changelog"
ZERO, ONE = TP(LOG, 0), TP(LOG, 1)


@pytest.fixture
def app() -> faust.App:
    named = caughtup.followers.faust.FollowingAssignor
    return faust.App("orders", store="caughtup-memory://", PartitionAssignor=named)


@pytest.fixture
def table(app: faust.App) -> Any:
    return app.Table("counts", default=int, partitions=2)


def event(app: faust.App, tp: TP, offset: int, key: str, value: int | None) -> Event:
    """A record of the changelog, or one that is being worked on."""
    raw = None if value is None else b"%d" % value
    message = Message(
        tp.topic,
        tp.partition,
        offset,
        timestamp=0.0,
        timestamp_type=0,
        headers=None,
        key=key.encode(),
        value=raw,
        checksum=None,
        tp=tp,
    )
    return Event(app, key, value, None, message)


def restore(app: faust.App, table: Any, tp: TP, first: int, records: Mapping[str, Any]) -> None:
    table.apply_changelog_batch(
        [event(app, tp, first + at, key, value) for at, (key, value) in enumerate(records.items())]
    )


async def test_a_table_keeps_what_it_stands_by_for(app: faust.App, table: Any) -> None:
    assert isinstance(table.data, MemoryStore)
    assert table.persisted_offset(ZERO) is None
    restore(app, table, ZERO, 5, {"a": 1, "b": 2})
    restore(app, table, ONE, 0, {"c": 3, "gone": None})
    assert (table.persisted_offset(ZERO), table.persisted_offset(ONE)) == (6, 1)
    await table.on_recovery_completed({ZERO}, {ONE})
    assert dict(table.data) == {"a": 1, "b": 2, "c": 3}
    await table.on_recovery_completed({ONE}, set())
    assert dict(table.data) == {"c": 3}
    assert (table.persisted_offset(ZERO), table.persisted_offset(ONE)) == (None, 1)


async def test_what_was_changed_here_goes_with_its_partition(app: faust.App, table: Any) -> None:
    token = _current_event.set(None)
    try:
        for tp, key in ((ZERO, "a"), (ONE, "b"), (ONE, "c")):
            worked_on = event(app, TP("placed", tp.partition), 1, key, 1)
            _current_event.set(weakref.ref(worked_on))
            table.data[key] = 1
        table.data.update({"d": 2}, e=3)
        del table.data["c"]
    finally:
        _current_event.reset(token)
    table.data.set_persisted_offset(ONE, 9)
    table.data.set_persisted_offset(ONE, 8)
    assert table.persisted_offset(ONE) == 9
    await table.on_recovery_completed({ONE}, set())
    assert dict(table.data) == {"b": 1, "d": 2, "e": 3}
    await table.on_recovery_completed(set(), set())
    assert dict(table.data) == {}


async def test_sets_are_as_with_fausts_store(app: faust.App) -> None:
    tags = app.SetTable("tags", partitions=2)
    storage = tags.data.storage
    assert isinstance(storage, MemoryStore)
    storage.set_persisted_offset(ZERO, 4)
    assert tags.persisted_offset(ZERO) is None
