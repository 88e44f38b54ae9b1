"""A bucket's generations of groups, and what the next batch compares with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from caughtup.models.polls.batch import Record
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.buckets import generations
from caughtup.pipelines.history.buckets.generations import MEMORIES, TOPICS
from caughtup.pipelines.history.buckets.tables import bucket_parts
from caughtup.pipelines.history.decoding.batches import pack, pack_records
from caughtup.pipelines.tables import REBALANCES
from tests.models.state.test_continued_group import owners
from tests.support.groups.coordinator import PlayedGroup
from tests.support.groups.records import consumer_generation
from tests.support.pipelines.commit_batches import batch_of, record
from tests.support.pipelines.end_offsets import TOPIC_TABLES, end_offsets

T = b"t" * 16
State = dict[str, bytes]


def write(
    records: Sequence[KafkaRecord], state: State | None = None, begins: bool = False
) -> tuple[list[dict[str, Any]], State]:
    """Write a batch with one bucket; return the rows of the table, and the state with what changed."""
    packs: dict[str, list[bytes]] = {}
    for few in pack_records(TOPIC_TABLES, 1, [batch_of([one]) for one in records]):
        for row in few.to_pylist():
            packs.setdefault(row["kind"], []).append(row["data"])
    left = dict(state or {})
    packs |= {f"known-{kind}": [data] for kind, data in left.items()}
    rows = []
    for part in bucket_parts(0, packs, 1, begins=begins):
        if part.table == REBALANCES.name:
            rows += part.rows.to_pylist()
        for kind in (MEMORIES, TOPICS):
            if f"kind={kind}/" in part.folder:
                empty = pa.RecordBatch.from_pylist([], schema=part.rows.schema)
                left[kind] = pack(part.rows.to_batches() or [empty])
    return rows, left


def placed(records: Sequence[Record], begin: int = 0) -> list[KafkaRecord]:
    return [record(key, value, begin + number) for number, (key, value) in enumerate(records)]


def look(topic_id: bytes | None, at: int = 0, **changes: object) -> KafkaRecord:
    return end_offsets("t", at, topic_id=None if topic_id is None else topic_id.hex(), **changes)


def test_state_is_there_from_the_first_batch_on_and_stays_where_nothing_changes() -> None:
    rows, state = write([], begins=True)
    assert (rows, sorted(state)) == ([], [MEMORIES, TOPICS])
    assert write([look(None)], state) == ([], state)


def test_an_id_that_comes_with_a_look_names_the_topic_from_then_on() -> None:
    played = PlayedGroup("g", topics={"t": (T, 1)})
    played.join("a", ["t"])
    (unnamed,), state = write(placed(played.take()))
    assert (unnamed["members"], unnamed["partitions"], unnamed["moved"]) == (1, None, None)
    _, state = write([look(T)], state)
    played.leave("a")
    played.join("b", ["t"])
    *_, named = write(placed(played.take(), 9), state)[0]
    assert (named["members"], named["partitions"]) == (1, 1)


def test_a_topic_is_gone_once_a_look_says_so() -> None:
    gone = look(None)._replace(value=None)
    _, state = write([look(None), gone._replace(offset=1)])
    read, without = (("orders-in", "t"), 2), (("orders-in",), 3)
    made = [consumer_generation(number, owners("a")) for _, number in (read, without)]
    assert [row["causes"][0]["kind"] for row in write(placed(made), state)[0][1:]] == ["requested"]


def test_a_group_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(generations.ContinuedGroup):
        def read(self, *given: Any) -> Any:
            if self.group == "broken":
                raise ZeroDivisionError("a bug")
            return super().read(*given)

    monkeypatch.setattr(generations, "ContinuedGroup", Failing)
    made = [consumer_generation(1, owners("a"), group=group) for group in ("broken", "orders")]
    broken, orders = write(placed(made))[0]
    assert (broken["group"], broken["error"]) == ("broken", "ZeroDivisionError: a bug")
    assert (orders["generation"], orders["causes"][0]["kind"]) == (1, "joined")


def test_a_group_that_is_too_large_to_be_remembered_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generations, "_MOST_BYTES", 100)
    _, state = write(placed([consumer_generation(1, owners("a"))]))
    (row,), _ = write(placed([consumer_generation(2, owners("a", "b"))], 1), state)
    assert (row["generation"], row["members"], row["causes"]) == (2, 2, None)


def test_what_another_release_remembered_otherwise_is_unknown() -> None:
    _, state = write(placed([consumer_generation(1, owners("a"))]))
    rows = {"group": ["orders"], "value": [b"\xc1"]}
    state[MEMORIES] = pack([pa.RecordBatch.from_pydict(rows)])
    (row,), _ = write(placed([consumer_generation(2, owners("a", "b"))], 1), state)
    assert (row["generation"], row["causes"]) == (2, None)
