"""Whatever stands in a batch, its columns are what its records say one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.events import KafkaRecord, Undecodable
from tests.models.wire import strategies
from tests.models.wire.strategies import thorough
from tests.support import wire
from tests.support.pipelines.commit_batches import LATEST_MS, batch_of, commit, decode, one_by_one
from tests.support.pipelines.partition_events import Event, decode_events

times = st.integers(0, LATEST_MS) | strategies.int64 | st.sampled_from([0, LATEST_MS, -1])
texts = st.text(max_size=8) | st.text("az09-", max_size=40)


@st.composite
def values(draw: st.DrawFn) -> bytes:
    written, version = draw(strategies.offset_commits())
    written = written._replace(
        offset=draw(strategies.offsets | strategies.int64),
        leader_epoch=draw(strategies.not_below_minus_one | strategies.int32),
        commit_timestamp_ms=draw(times),
        expire_timestamp_ms=draw(st.just(-1) | strategies.int64) if version == 1 else -1,
        metadata=draw(texts | st.text("m", min_size=100, max_size=300)),
    )
    tags = draw(st.just({}) | strategies.unknown_tags)
    return wire.offset_commit(written, version, tags) + draw(st.just(b"") | st.binary(max_size=3))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    raw = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(raw)))
        if draw(st.booleans()):
            del raw[at:]
        else:
            raw[at : at + 1] = draw(st.binary(min_size=1, max_size=3))
    return bytes(raw)


commit_keys = st.builds(
    wire.offset_key,
    st.builds(OffsetKey, texts, texts, strategies.partitions | strategies.int32),
    st.sampled_from([1, 1, 0]),
)
other_keys = texts.map(wire.group_key) | st.builds(
    lambda key_type, rest: wire.number("h", key_type) + rest,
    st.integers(-3, 30),
    st.binary(max_size=9),
)
records = st.builds(
    KafkaRecord,
    st.just("__consumer_offsets"),
    strategies.partitions,
    st.integers(0, 2**63 - 1),
    times,
    # Mostly what is plain, so that what isn't stands among it.
    commit_keys | commit_keys | damaged(commit_keys) | other_keys | st.none(),
    values() | values() | damaged(values()) | st.none() | st.binary(max_size=40),
)
byte_types = st.sampled_from(
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
)


@thorough
@given(st.lists(records, max_size=12), byte_types, st.integers(0, 3), st.integers(0, 3))
def test_a_batch_says_what_its_records_say_one_by_one(chosen, bytes_type, before, after):
    plain = [commit()]
    whole = batch_of(plain * before + chosen + plain * after or plain, bytes_type)
    assert decode(whole.slice(before, len(chosen))) == one_by_one(chosen)


@thorough
@given(st.lists(records, min_size=1, max_size=12))
def test_a_batch_holds_the_events_that_are_made_record_by_record(chosen):
    events = list(decode_events(chosen))
    commits, _, undecodable = decode(batch_of(chosen))
    assert [f"{chosen[row].offset}: {why}" for row, why in undecodable] == [
        f"{event.record.offset}: {event.why}" for event in events if isinstance(event, Undecodable)
    ]
    assert [
        Event(
            "commit",
            row["topic"],
            row["partition"],
            row["log_partition"],
            row["log_offset"],
            row["commit_time_ms"],
            group=row["group"],
            present=row["present"],
            committed=row["committed"] or 0,
        )
        for row in commits
    ] == [event for event in events if isinstance(event, Event)]
