"""Records decoded in a broker's answer, beside the same ones as Arrow's columns."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import Section, decode_log
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.decoding.batches import decoded
from caughtup.pipelines.history.decoding.commit_columns import decode_commits
from caughtup.pipelines.history.decoding.log_records import RECORD_COLUMNS, AnswerRecords
from tests.models.wire.strategies import thorough
from tests.pipelines.history.decoding import test_commit_columns_one_by_one as one_by_one
from tests.support import wire
from tests.support.pipelines.commit_batches import (
    KEY,
    LATEST_MS,
    NOW_MS,
    batch_of,
    commit,
    decode,
    record,
)
from tests.support.record_batches import LoggedRecord, record_batch

_GZIP = 1


def answer(records: list[KafkaRecord]) -> AnswerRecords:
    """Return records as a broker sends them: two in a batch, every other one compressed."""
    logged = [LoggedRecord(r.offset, r.key, r.value, r.timestamp_ms) for r in records]
    batches = [
        record_batch(logged[at : at + 2], compression=_GZIP if at % 4 else 0)
        for at in range(0, len(logged), 2)
    ]
    data = b"head" + b"".join(batches)
    section = Section(4, len(data), 0, PendingCommits())
    found = decode_log(data, section, plain_batch, 1 << 62)
    return AnswerRecords(TopicPartition("__consumer_offsets", 7), found.logged)


@st.composite
def logs(draw: st.DrawFn) -> list[KafkaRecord]:
    """Records of a partition, whose timestamps are in a batch's range."""
    chosen = draw(st.lists(one_by_one.records, min_size=1, max_size=12))
    return [
        one._replace(partition=7, offset=at, timestamp_ms=min(max(0, one.timestamp_ms), LATEST_MS))
        for at, one in enumerate(chosen)
    ]


@thorough
@given(logs())
def test_an_answer_says_what_its_records_say_as_columns(chosen: list[KafkaRecord]) -> None:
    found = decode_commits(answer(chosen))
    expected = decode(batch_of(chosen))
    assert found.commits.to_pylist() == expected.commits
    assert (found.others.tolist(), found.undecodable) == (expected.others, expected.undecodable)


def test_null_keys_and_values_stand_in_their_place() -> None:
    chosen = [
        record(wire.offset_key(KEY), None, 0),
        record(None, b"value", 1),
        commit()._replace(offset=2),
        record(None, None, 3),
    ]
    whole = answer(chosen).to_batch()
    whole.validate(full=True)
    assert whole == pa.RecordBatch.from_pylist([r._asdict() for r in chosen], RECORD_COLUMNS)
    kinds = dict(decoded({}, answer(chosen)))
    assert [row["present"] for row in kinds["commits"].to_pylist()] == [False, True]
    assert [row["log_offset"] for row in kinds["quarantine"].to_pylist()] == [1, 3]
    assert [row["value"] for row in kinds["quarantine"].to_pylist()] == [b"value", None]


def test_records_of_own_topics_are_decoded_from_an_answer_too() -> None:
    value = b'{"schema":1,"topic":"orders","partition":0,"start_offset":0,"as_of_ms":%d,' % NOW_MS
    value += b'"last_stable_offset":9,"end_offset":9}'
    logged = answer([record(b"orders-0", value, 0), record(b"orders-0", b"{half", 1)])
    ends = logged._replace(partition=TopicPartition("ends", 7))
    kinds = dict(decoded({"ends": "end_offsets"}, ends))
    assert [row["end_offset"] for row in kinds["end_offsets"].to_pylist()] == [9]
    assert [row["log_offset"] for row in kinds["quarantine"].to_pylist()] == [1]
