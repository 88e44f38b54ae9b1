from __future__ import annotations

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.wire.streams_group_topology import (
    CopartitionGroup,
    StreamsGroupTopology,
    Subtopology,
    TopicInfo,
    decode_streams_group_topology,
)
from tests.support.groups.new_group_encoders import VERSION_0, new_group_record

CHANGELOG = TopicInfo("shop-counts-changelog", 0, 1, {"cleanup.policy": "compact"})
REPARTITION = TopicInfo("shop-by-name-repartition", 4, 0, {})
COUNTS = Subtopology(
    subtopology_id="1",
    source_topics=("orders",),
    source_topic_regex=("pay.*",),
    state_changelog_topics=(CHANGELOG,),
    repartition_sink_topics=("out",),
    repartition_source_topics=(REPARTITION,),
    copartition_groups=(CopartitionGroup((0,), (), (0,)),),
)


def test_a_topology_is_read_as_written_out_by_hand():
    config = b"\x0fcleanup.policy\x08compact\x00"
    changelog = b"\x16shop-counts-changelog\x00\x00\x00\x00\x00\x01\x02" + config + b"\x00"
    repartition = b"\x19shop-by-name-repartition\x00\x00\x00\x04\x00\x00\x01\x00"
    group = b"\x02\x00\x00\x01\x02\x00\x00\x00"
    subtopology = (
        b"\x021\x02\x07orders\x02\x06pay.*"
        + (b"\x02" + changelog)
        + b"\x02\x04out"
        + (b"\x02" + repartition)
        + (b"\x02" + group)
        + b"\x00"
    )
    data = VERSION_0 + b"\x00\x00\x00\x03\x02" + subtopology + b"\x00"
    topology = StreamsGroupTopology(3, (COUNTS,))
    assert decode_streams_group_topology(data) == topology
    assert new_group_record(topology) == data


def test_more_subtopologies_than_the_bytes_could_hold_are_refused_at_once():
    claim = VERSION_0 + b"\x00\x00\x00\x03" + b"\x80\x94\xeb\xdc\x03" + bytes(9)
    assert len(claim) == 20
    with pytest.raises(DecodeError, match="bad_length: 999999999 elements claimed"):
        decode_streams_group_topology(claim)
