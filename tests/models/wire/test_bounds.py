"""Every number on the wire has bounds, at which it is read and beyond which it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.offsets import LONG_MAX
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_offset_commit
from caughtup.models.wire.user_data import decode_assignment_info
from tests.models.wire.bounded_fields import COMMIT, FIELDS, GIVEN
from tests.models.wire.new_group_fields import LONG_MIN
from tests.models.wire.streams_encoders import assignment_info
from tests.support import wire

every_field = pytest.mark.parametrize("name", FIELDS)


@every_field
def test_a_number_at_its_bounds_is_read(name: str) -> None:
    decode, write, good, _ = FIELDS[name]
    for number in good:
        decode(write(number))


@every_field
def test_a_number_beyond_its_bounds_is_refused(name: str) -> None:
    decode, write, _, bad = FIELDS[name]
    for number in bad:
        with pytest.raises(DecodeError) as failure:
            decode(write(number))
        assert failure.value.code in ("out_of_range", "bad_time"), number
        assert str(number) in failure.value.message


def test_a_rebalance_that_is_due_after_the_year_9999_is_due_at_its_end() -> None:
    for due_ms in (LATEST_MS + 1, LONG_MAX - 1):
        raw = assignment_info(replace(GIVEN, next_rebalance_ms=due_ms))
        assert decode_assignment_info(raw).next_rebalance_ms == LATEST_MS
    assert decode_assignment_info(assignment_info(GIVEN)).next_rebalance_ms is None


def test_an_expiry_that_overflowed_is_none() -> None:
    for expire_ms, read in ((LONG_MAX, LONG_MAX), (-1, -1), (LONG_MIN, -1)):
        raw = wire.offset_commit(COMMIT._replace(expire_timestamp_ms=expire_ms), 1)
        assert decode_offset_commit(raw).expire_timestamp_ms == read


def test_what_is_out_of_range_is_counted_and_the_key_keeps_what_could_be_read() -> None:
    key = OffsetKey("shop", "orders", 0)
    records = [
        (wire.offset_key(key), wire.offset_commit(COMMIT, 4)),
        (wire.offset_key(key), wire.offset_commit(COMMIT._replace(offset=LONG_MIN), 4)),
        (wire.offset_key(key._replace(partition=-1)), wire.offset_commit(COMMIT, 4)),
    ]
    batch = decode_batch(records)
    assert batch.commits.by_key() == {key: COMMIT}
    assert batch.errors == {(1, "out_of_range"): 2}
    assert batch.samples == [
        f"OffsetKey(group='shop', topic='orders', partition=0): out_of_range: offset {LONG_MIN}",
        f"{records[2][0]!r}: out_of_range: partition -1",
    ]
