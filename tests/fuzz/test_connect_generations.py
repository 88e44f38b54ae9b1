"""Whatever Connect's workers write, a generation is read and decided from what can be read of it."""

from __future__ import annotations

from random import Random

import pytest

from caughtup.models.connect.assignors import decide_eager, decide_incremental
from caughtup.models.connect.decision import NO_MEMORY
from caughtup.models.connect.generation import read_connect_generation
from caughtup.models.errors import DecodeError
from caughtup.models.wire.connect_protocol import PROTOCOL_TYPE
from caughtup.models.wire.group_metadata import GroupMetadata, decode_group_metadata
from tests.fuzz.classic_groups import ClassicGroups
from tests.fuzz.values import Values

RECORDS = 3_000


@pytest.mark.parametrize(("seed", "damage"), [(1, 0.0), (2, 0.2), (3, 0.5)])
def test_a_member_that_cannot_be_read_costs_itself(seed: int, damage: float) -> None:
    groups = ClassicGroups(Values(Random(seed), extreme=0.03), damage)
    memory, read, skipped, longest_ms = NO_MEMORY, 0, 0, 0
    for _ in range(RECORDS):
        metadata = _decode(groups.record()[1])
        if metadata is None or metadata.protocol_type != PROTOCOL_TYPE or not metadata.members:
            continue
        generation = read_connect_generation("connect", metadata)
        assert generation is not None
        assert len(generation.workers) + len(generation.skipped) == len(metadata.by_id())
        skipped += len(generation.skipped)
        read += len(generation.workers)
        longest_ms = max(longest_ms, generation.delay_ms, generation.rejoin_at_ms or 0)
        if generation.workers:
            round_ = generation.round({"stream": 2, "a": 1}, read)
            decision, memory = decide_incremental(round_, memory)
            eager = decide_eager(round_)
            assert decision.workers.keys() == eager.workers.keys() == generation.workers.keys()
            assert all(worker.owns is not None for worker in generation.workers.values())
    assert read > 20
    assert skipped > 10
    assert longest_ms < 1 << 53


def _decode(value: bytes | None) -> GroupMetadata | None:
    assert value is not None
    try:
        return decode_group_metadata(value)
    except DecodeError:
        return None
