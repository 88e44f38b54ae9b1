from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import ProcessId
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM
from caughtup.models.wire.user_data import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)
from tests.models.wire.strategies import distinct_partitions, int64, tasks, thorough, times
from tests.support import wire

sums = st.integers(0, LONG_MAX) | st.sampled_from([LATEST_OFFSET, UNKNOWN_OFFSET_SUM])


@thorough
@given(st.builds(ProcessId, int64, int64), st.dictionaries(tasks, sums), st.integers(0, 10**6))
def test_what_a_member_says_is_what_kafka_streams_would_write(process, offset_sums, joins):
    written = encode_subscription_info(process, offset_sums, joins)
    info = decode_subscription_info(written)
    unique = int.from_bytes([joins % 256], signed=True)
    in_order = dict(sorted(offset_sums.items()))
    assert info == SubscriptionInfo(11, 11, process, "", in_order, unique, 0, {})
    assert written == wire.subscription_info(info)


@thorough
@given(
    st.lists(tasks),
    st.dictionaries(tasks, distinct_partitions),
    st.none() | times,
)
def test_what_a_member_is_given_is_what_kafka_streams_would_write(active, standby, next_ms):
    written = encode_assignment_info(active, standby, next_ms)
    info = decode_assignment_info(written)
    in_order = dict(sorted(standby.items()))
    assert info == AssignmentInfo(11, 11, tuple(active), in_order, {}, {}, 0, next_ms)
    assert written == wire.assignment_info(info)


def test_a_member_joins_with_other_bytes_each_time():
    process = ProcessId(1, 2)
    joins = [encode_subscription_info(process, {}, number) for number in range(256)]
    assert len(set(joins)) == 256
    assert encode_subscription_info(process, {}, 256) == joins[0]
    read = [dataclasses.replace(decode_subscription_info(one), unique_field=0) for one in joins]
    assert set(map(str, read)) == {str(read[0])}
