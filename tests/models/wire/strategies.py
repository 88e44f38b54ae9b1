"""Hypothesis strategies for every value that the wire decoders return, in every version."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from caughtup.models.ids import NUMBER_MAX, ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM
from caughtup.models.wire import bounds
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMember,
    GroupMetadata,
)
from caughtup.models.wire.user_data import AssignmentInfo, HostInfo, SubscriptionInfo
from tests.support.sizes import daily

#: How the property tests here run; a failure prints what reproduces it.
thorough = settings(print_blob=True, deadline=None, max_examples=daily(40, 200))

int8 = st.integers(-(1 << 7), (1 << 7) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(max_size=12)
topics = st.text("abc-_.019", min_size=1, max_size=8)
partitions = st.integers(0, NUMBER_MAX)
raw_bytes = st.binary(max_size=40)
topic_partitions = st.builds(TopicPartition, topics, partitions)
distinct_partitions = st.lists(topic_partitions, unique=True, max_size=5).map(tuple)
by_topic = distinct_partitions.map(lambda chosen: tuple(sorted(chosen)))
tasks = st.builds(TaskId, st.integers(0, 3), st.integers(0, 5))
topic_ids = st.none() | st.binary(min_size=16, max_size=16).filter(any)

offsets = st.integers(0, LONG_MAX)
times = st.integers(0, bounds.LATEST_MS)
known_times = st.just(-1) | times
epochs = st.integers(-2, (1 << 31) - 1)
not_below_minus_one = st.integers(-1, (1 << 31) - 1)

offset_keys = st.builds(OffsetKey, names, names, partitions)
unknown_tags = st.dictionaries(st.integers(1, 300), raw_bytes, max_size=3)


@st.composite
def offset_commits(draw: st.DrawFn) -> tuple[OffsetCommit, int]:
    """A commit and a version that can hold it."""
    version = draw(st.integers(0, 4))
    commit = OffsetCommit(
        offset=draw(offsets),
        leader_epoch=draw(not_below_minus_one) if version >= 3 else -1,
        metadata=draw(st.text(max_size=200)),
        commit_timestamp_ms=draw(times),
        expire_timestamp_ms=draw(st.integers(-1, LONG_MAX)) if version == 1 else -1,
        topic_id=draw(topic_ids) if version >= 4 else None,
    )
    return commit, version


@st.composite
def group_metadata(draw: st.DrawFn) -> tuple[GroupMetadata, int]:
    """A group's metadata and a version that can hold it."""
    version = draw(st.integers(0, 4))
    members = st.builds(
        GroupMember,
        member_id=names,
        group_instance_id=st.none() | names if version >= 3 else st.none(),
        client_id=names,
        client_host=names,
        rebalance_timeout_ms=int32 if version >= 1 else st.just(-1),
        session_timeout_ms=int32,
        subscription=raw_bytes,
        assignment=raw_bytes,
    )
    metadata = GroupMetadata(
        protocol_type=draw(names),
        generation=draw(not_below_minus_one),
        protocol=draw(st.none() | names),
        leader=draw(st.none() | names),
        state_timestamp_ms=draw(known_times) if version >= 2 else -1,
        members=tuple(draw(st.lists(members, max_size=4))),
    )
    return metadata, version


@st.composite
def subscriptions(draw: st.DrawFn) -> ConsumerSubscription:
    version = draw(st.integers(0, 3))
    return ConsumerSubscription(
        version=version,
        topics=tuple(draw(st.lists(topics, max_size=4))),
        user_data=draw(st.none() | raw_bytes),
        owned=draw(by_topic) if version >= 1 else (),
        generation=draw(st.integers(-1, 1 << 30)) if version >= 2 else -1,
        rack=draw(st.none() | names) if version >= 3 else None,
    )


assignments = st.builds(ConsumerAssignment, st.integers(0, 3), by_topic, st.none() | raw_bytes)


# All that a member said of a task before version 7: that it ran it, or that it didn't.
sentinels = st.sampled_from((LATEST_OFFSET, UNKNOWN_OFFSET_SUM))


@st.composite
def subscription_infos(draw: st.DrawFn) -> SubscriptionInfo:
    version = draw(st.integers(1, 11))
    sums = sentinels | offsets if version >= 7 else sentinels
    return SubscriptionInfo(
        version=version,
        latest_supported_version=draw(st.integers(version, 20)) if version >= 3 else -1,
        process_id=draw(st.builds(ProcessId, int64, int64)),
        user_end_point=draw(names) if version >= 2 else "",
        offset_sums=draw(st.dictionaries(tasks, sums, max_size=6)),
        unique_field=draw(int8) if version >= 8 else 0,
        error_code=draw(int32) if version >= 9 else 0,
        client_tags=draw(st.dictionaries(names, names, max_size=3)) if version >= 11 else {},
    )


by_host = st.dictionaries(
    st.builds(HostInfo, names, st.integers(0, 65535)), distinct_partitions, max_size=3
)


@st.composite
def assignment_infos(draw: st.DrawFn) -> AssignmentInfo:
    version = draw(st.integers(1, 11))
    next_times = st.none() | times
    return AssignmentInfo(
        version=version,
        commonly_supported_version=draw(st.integers(1, 11)) if version >= 3 else -1,
        active=tuple(draw(st.lists(tasks, max_size=5))),
        standby=draw(st.dictionaries(tasks, distinct_partitions, max_size=4)),
        active_by_host=draw(by_host) if version >= 2 else {},
        standby_by_host=draw(by_host) if version >= 6 else {},
        error_code=draw(st.integers(0, 4)) if version >= 4 else 0,
        next_rebalance_ms=draw(next_times) if version >= 7 else None,
    )
