"""What the protocol's answers are drawn of."""

from __future__ import annotations

import base64

from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.cluster_answers import PartitionInfo
from caughtup.models.ids import TopicPartition

INT16 = st.integers(1, 2**15 - 1)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)
ERRORS = st.integers(1, 120)
BROKERS = st.lists(st.integers(0, 9), max_size=6).map(tuple)
NAMES = st.text("abc.-_", min_size=1, max_size=200)
PARTITIONS = st.builds(TopicPartition, NAMES, INT32)
PARTITION_INFOS = st.builds(
    PartitionInfo, BROKERS, BROKERS, st.none() | st.integers(0, 9), INT32, BROKERS
)
TOPIC_ID = base64.urlsafe_b64encode(bytes(range(16))).decode().rstrip("=")
ANY = TopicPartition("any", 0)
