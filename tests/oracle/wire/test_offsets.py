"""The published coordinator's records: what it writes is read here, and what it reads likewise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from tests.models.wire import strategies
from tests.models.wire.strategies import thorough
from tests.oracle.wire.records import damage
from tests.support import wire

FLEXIBLE = b"\x00\x04"
SHOP = OffsetKey("shop", "orders", 3)


def generated(jvm: Any, name: str) -> Any:
    return getattr(jvm.org.apache.kafka.coordinator.group.generated, name)()


def message_util(jvm: Any) -> Any:
    return jvm.org.apache.kafka.common.protocol.MessageUtil


def uuid(jvm: Any, raw: bytes) -> Any:
    most, least = (int.from_bytes(half, signed=True) for half in (raw[:8], raw[8:]))
    return jvm.org.apache.kafka.common.Uuid(most, least)


def offset_commit_value(jvm: Any, commit: OffsetCommit) -> Any:
    value = generated(jvm, "OffsetCommitValue")
    value.setOffset(commit.offset).setLeaderEpoch(commit.leader_epoch)
    value.setMetadata(commit.metadata).setCommitTimestamp(commit.commit_timestamp_ms)
    value.setExpireTimestamp(commit.expire_timestamp_ms)
    if commit.topic_id is not None:
        value.setTopicId(uuid(jvm, commit.topic_id))
    return value


def group_metadata_value(jvm: Any, metadata: GroupMetadata) -> Any:
    members = jvm.java.util.ArrayList()
    for member in metadata.members:
        written = generated(jvm, "GroupMetadataValue$MemberMetadata")
        written.setMemberId(member.member_id).setGroupInstanceId(member.group_instance_id)
        written.setClientId(member.client_id).setClientHost(member.client_host)
        if member.rebalance_timeout_ms != -1:
            written.setRebalanceTimeout(member.rebalance_timeout_ms)
        written.setSessionTimeout(member.session_timeout_ms)
        written.setSubscription(member.subscription).setAssignment(member.assignment)
        members.add(written)
    value = generated(jvm, "GroupMetadataValue")
    value.setProtocolType(metadata.protocol_type).setGeneration(metadata.generation)
    value.setProtocol(metadata.protocol).setLeader(metadata.leader).setMembers(members)
    return value.setCurrentStateTimestamp(metadata.state_timestamp_ms)


def read_commit(value: Any) -> OffsetCommit:
    """Convert what the coordinator has read from Java."""
    topic_id = value.topicId()
    halves = (topic_id.getMostSignificantBits(), topic_id.getLeastSignificantBits())
    raw = b"".join(half.to_bytes(8, signed=True) for half in halves)
    return OffsetCommit(
        value.offset(),
        value.leaderEpoch(),
        value.metadata(),
        value.commitTimestamp(),
        max(value.expireTimestamp(), -1),
        raw if any(raw) else None,
    )


def read_metadata(value: Any) -> GroupMetadata:
    return GroupMetadata(
        value.protocolType(),
        value.generation(),
        value.protocol(),
        value.leader(),
        value.currentStateTimestamp(),
        tuple(
            GroupMember(
                member.memberId(),
                member.groupInstanceId(),
                member.clientId(),
                member.clientHost(),
                member.rebalanceTimeout(),
                member.sessionTimeout(),
                member.subscription(),
                member.assignment(),
            )
            for member in value.members()
        ),
    )


def coordinator_reads(jvm: Any, key: bytes, value: bytes) -> Any | None:
    """Return the record's value as the published coordinator reads it, None where it refuses."""
    serde = jvm.org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde()
    wrap = jvm.java.nio.ByteBuffer.wrap
    try:
        return serde.deserialize(wrap(key), wrap(value)).value().message()
    except Py4JJavaError:
        return None


@thorough
@given(strategies.offset_keys, st.sampled_from(["OffsetCommitKey", "LegacyOffsetCommitKey"]))
def test_keys_of_committed_offsets_are_read_as_the_coordinator_writes_them(jvm, key, kind):
    written = generated(jvm, kind)
    written.setGroup(key.group).setTopic(key.topic).setPartition(key.partition)
    assert decode_key(message_util(jvm).toCoordinatorTypePrefixedBytes(written)) == key


@thorough
@given(strategies.names)
def test_group_keys_are_read_as_the_coordinator_writes_them(jvm, group):
    written = generated(jvm, "GroupMetadataKey").setGroup(group)
    raw = message_util(jvm).toCoordinatorTypePrefixedBytes(written)
    assert decode_key(raw) == (group,)


@thorough
@given(strategies.offset_commits())
def test_commits_are_read_as_the_coordinator_writes_them(jvm, commit_and_version):
    commit, version = commit_and_version
    value = offset_commit_value(jvm, commit)
    raw = message_util(jvm).toVersionPrefixedBytes(version, value)
    assert decode_offset_commit(raw) == commit


@thorough
@given(strategies.group_metadata())
def test_group_metadata_is_read_as_the_coordinator_writes_it(jvm, metadata_and_version):
    metadata, version = metadata_and_version
    value = group_metadata_value(jvm, metadata)
    raw = message_util(jvm).toVersionPrefixedBytes(version, value)
    assert decode_group_metadata(raw) == metadata


def test_the_coordinators_newest_versions_are_the_newest_read_here(jvm):
    for name, decode in (
        ("OffsetCommitValue", decode_offset_commit),
        ("GroupMetadataValue", decode_group_metadata),
    ):
        newest = generated(jvm, name).highestSupportedVersion()
        decode(message_util(jvm).toVersionPrefixedBytes(newest, generated(jvm, name)))


def agree(decode: Callable[[bytes], object], raw: bytes, theirs: object | None) -> bool:
    """Return whether both read the same, both refuse, or only ours does with a good reason.

    Kafka puts a replacement character where a string isn't UTF-8, and takes any number for an
    offset or a time. In flexible versions it doesn't look at how long a topic id claims to be, and
    takes a five-byte varint that overflows for null.
    """
    try:
        ours = decode(raw)
    except DecodeError as refused:
        stricter = ("bad_utf8", "out_of_range", "bad_time")
        stricter += ("bad_length",) if raw.startswith(FLEXIBLE) else ()
        return theirs is None or refused.code in stricter
    return ours == theirs


@thorough
@given(strategies.offset_commits(), st.data())
def test_a_damaged_commit_is_read_as_the_coordinator_reads_it(jvm, commit_and_version, data):
    raw = damage(data, wire.offset_commit(*commit_and_version))
    value = coordinator_reads(jvm, wire.offset_key(SHOP), raw)
    assert agree(decode_offset_commit, raw, value and read_commit(value))


@thorough
@given(strategies.group_metadata(), st.data())
def test_damaged_group_metadata_is_read_as_the_coordinator_reads_it(
    jvm, metadata_and_version, data
):
    raw = damage(data, wire.group_metadata(*metadata_and_version))
    value = coordinator_reads(jvm, wire.group_key("shop"), raw)
    assert agree(decode_group_metadata, raw, value and read_metadata(value))
