"""Which standbys wait for which restoring actives of their thread."""

from __future__ import annotations

from caughtup.models.copies.restoration import standbys_wait_for, waiting_standbys
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.polls.batch import decode_batch
from tests.support.groups.records import GROUP
from tests.support.groups.streams import Member, generation, process

A, B, C = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)


def test_standbys_begin_when_every_active_of_the_thread_is_restored() -> None:
    assert standbys_wait_for({A: True, C: False, B: False}) == [B, C]
    assert standbys_wait_for({A: True, B: True}) == []
    assert standbys_wait_for({}) == []


def two_threads() -> StreamsGeneration:
    """One process: its first thread has an active and a standby, its second a standby only."""
    (_, metadata), *_ = decode_batch(
        [
            generation(
                1,
                Member("a", 1, active=("0_0",), standby=("0_1",), thread=1),
                Member("a", 1, standby=("0_2",), thread=2),
            )
        ]
    ).groups.items()
    assert metadata is not None
    read = read_streams_generation(GROUP, metadata, {})
    assert read is not None
    return read


def test_a_standby_waits_for_the_actives_of_its_own_thread_only() -> None:
    first = str(process(1))
    restoring = {CopyKey(first, A)}
    assert waiting_standbys(two_threads(), restoring) == {CopyKey(first, B): (A,)}
    assert waiting_standbys(two_threads(), set()) == {}


def test_the_same_task_restoring_in_another_process_holds_up_nobody() -> None:
    assert waiting_standbys(two_threads(), {CopyKey(str(process(2)), A)}) == {}
