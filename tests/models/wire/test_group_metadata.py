from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.group_metadata import GroupMetadata, decode_group_metadata
from tests.models.wire.strategies import group_metadata, thorough, unknown_tags
from tests.support import wire

EMPTY = GroupMetadata("consumer", 4, None, None, 1_732_000_000_000, ())


@thorough
@given(group_metadata())
def test_a_groups_metadata_reads_back_in_every_version(metadata_and_version):
    metadata, version = metadata_and_version
    assert decode_group_metadata(wire.group_metadata(metadata, version)) == metadata


@thorough
@given(group_metadata(), unknown_tags, st.binary(max_size=5))
def test_unknown_tagged_fields_and_bytes_left_over_change_nothing(
    metadata_and_version, tags, left_over
):
    metadata, version = metadata_and_version
    data = wire.group_metadata(metadata, version, tags) + left_over
    assert decode_group_metadata(data) == metadata


@pytest.mark.parametrize("version", range(2, 5))
def test_an_empty_group_has_neither_protocol_nor_leader_nor_members(version):
    assert decode_group_metadata(wire.group_metadata(EMPTY, version)) == EMPTY


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_that_is_not_known_is_refused(version):
    data = wire.number("h", version) + wire.group_metadata(EMPTY, 3)[2:]
    with pytest.raises(DecodeError, match=f"unknown_version: group metadata version {version}"):
        decode_group_metadata(data)


def test_more_members_than_the_bytes_could_hold_are_refused_at_once():
    without_count = wire.group_metadata(EMPTY, 3)[:-4]
    with pytest.raises(DecodeError, match="bad_length: 2147483647 elements claimed"):
        decode_group_metadata(without_count + wire.number("i", 2147483647))
