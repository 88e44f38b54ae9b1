"""A generated fleet: the same each time, told apart from everything real, and bounded."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.demo.fleet.group import RUNNING, make_story
from caughtup.demo.fleet.offset_commits import RawRecord
from caughtup.demo.fleet.records import fleet_records
from caughtup.demo.fleet.timeline import (
    Committed,
    Deleted,
    FleetSettings,
    Generation,
    fleet_events,
    log_end,
)
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.group_metadata import decode_assignment, decode_subscription
from caughtup.models.wire.user_data import decode_subscription_info
from tests.support.sizes import daily

SETTINGS = FleetSettings(
    groups=24, partitions=5, interval_ms=60_000, span_ms=1_800_000, deleted_percent=30, makes=12
)
OFFSETS_PARTITIONS = 4


def records(settings: FleetSettings) -> list[RawRecord]:
    return list(chain.from_iterable(fleet_records(fleet_events(settings), OFFSETS_PARTITIONS)))


def test_the_same_settings_give_the_same_bytes_and_another_seed_others() -> None:
    assert records(SETTINGS) == records(SETTINGS)
    assert records(SETTINGS) != records(replace(SETTINGS, seed=1))


def test_everything_is_called_generated_and_stands_where_its_group_is_kept() -> None:
    ends: dict[int, int] = defaultdict(int)
    for record in records(SETTINGS):
        batch = decode_batch([(record.key, record.value)])
        assert not batch.errors
        assert not batch.skipped
        (group,) = {*batch.groups, *(key.group for key in batch.commits.by_key())}
        assert group.startswith("generated-")
        assert all(key.topic.startswith("generated-") for key in batch.commits.by_key())
        for metadata in filter(None, batch.groups.values()):
            assert all(member.client_id.startswith(group) for member in metadata.members)
        assert record.partition == coordinator_partition(group, OFFSETS_PARTITIONS)
        assert record.offset == ends[record.partition]
        ends[record.partition] += 1


def test_there_is_something_of_everything_in_the_order_of_time() -> None:
    events = list(fleet_events(SETTINGS))
    assert all(before.at_ms <= after.at_ms for before, after in pairwise(events))
    kinds = {(type(event), event.group.streams) for event in events}
    assert kinds == {(kind, who) for kind in (Generation, Committed, Deleted) for who in (0, 1)}


def test_a_groups_generations_have_each_partition_once_and_numbers_without_a_gap() -> None:
    numbers: dict[str, int] = defaultdict(int)
    gone = set()
    for event in fleet_events(SETTINGS):
        name = event.group.name
        assert name not in gone
        if isinstance(event, Deleted):
            gone.add(name)
        elif isinstance(event, Generation):
            numbers[name] += 1
            assert event.number == numbers[name]
            active = sorted(chain.from_iterable(member.active for member in event.members))
            assert active == (list(range(SETTINGS.partitions)) if event.members else [])
    assert gone


def test_a_streams_member_reports_what_it_was_given_before() -> None:
    seen = 0
    before: dict[str, dict[int, set[int]]] = defaultdict(dict)
    for event in fleet_events(replace(SETTINGS, streams_percent=100)):
        if not isinstance(event, Generation):
            continue
        for member in event.members:
            held = before[event.group.name].get(member.number, set())
            assert set(member.offset_sums) == held
            running = {one for one, own in member.offset_sums.items() if own == RUNNING}
            assert running <= held
            seen += bool(held - running)
        before[event.group.name] = {
            member.number: {*member.active, *member.standby} for member in event.members
        }
    assert seen, "no warm-up was ever reported"


def test_a_members_bytes_say_what_the_story_says() -> None:
    events = (one for one in fleet_events(SETTINGS) if isinstance(one, Generation) and one.members)
    for event in islice(events, 40):
        *_, last = next(fleet_records([event], OFFSETS_PARTITIONS))
        metadata = decode_batch([(last.key, last.value)]).groups[event.group.name]
        assert metadata is not None
        assert metadata.generation == event.number
        for reported, member in zip(event.members, metadata.members, strict=True):
            subscription = decode_subscription(member.subscription)
            assignment = decode_assignment(member.assignment)
            assert subscription.topics == (event.group.topic,)
            assert tuple(one.partition for one in assignment.partitions) == reported.active
            assert (subscription.user_data is None) == (not event.group.streams)
            if subscription.user_data is not None:
                info = decode_subscription_info(subscription.user_data)
                assert info.process_id == reported.process
                sums = {task.partition: own for task, own in info.offset_sums.items()}
                assert sums == reported.offset_sums


@settings(max_examples=daily(20, 60), print_blob=True)
@given(
    seed=st.integers(0, 1 << 40),
    partitions=st.integers(1, 8),
    span_ms=st.integers(10_000, 4_000_000),
    changes=st.integers(0, 6),
    streams=st.sampled_from([0, 100]),
    deleted=st.sampled_from([0, 100]),
)
def test_any_story_goes_forward_and_ends_empty_if_it_is_deleted(
    seed: int, partitions: int, span_ms: int, changes: int, streams: int, deleted: int
) -> None:
    story = make_story(
        seed,
        partitions=partitions,
        span_ms=span_ms,
        changes=changes,
        streams_percent=streams,
        deleted_percent=deleted,
    )
    times = [step.after_ms for step in story.steps]
    assert times == sorted(set(times))
    assert times[0] == 0
    assert len(story.steps[0].members) == 1
    assert story.streams == bool(streams)
    assert (story.deleted_after_ms is not None) == bool(deleted)
    assert all(step.members for step in story.steps[:-1])
    assert bool(story.steps[-1].members) == (not deleted)


def test_commits_never_go_back_and_never_pass_the_end_of_the_log() -> None:
    last: dict[tuple[str, int], int] = {}
    for event in fleet_events(replace(SETTINGS, interval_ms=1_000, span_ms=30_000)):
        if isinstance(event, Committed):
            after_ms = event.at_ms - SETTINGS.start_ms  # a group begins a little later
            for partition, offset in event.offsets.items():
                key = event.group.name, partition
                assert last.get(key, 0) <= offset
                assert offset <= log_end(SETTINGS, event.group.topic, partition, after_ms)
                last[key] = offset
    assert len(set(last.values())) > len(last) * 9 // 10, "groups stand where others do"


@pytest.mark.parametrize("interval_ms", [60_000, 1_800_000])
def test_a_fleet_commits_as_often_as_its_settings_say(interval_ms: int) -> None:
    settings = replace(SETTINGS, interval_ms=interval_ms, deleted_percent=0)
    commits = [one for one in fleet_events(settings) if isinstance(one, Committed)]
    assert sum(len(one.offsets) for one in commits) == settings.commits
