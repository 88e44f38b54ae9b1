"""Polls of ``__consumer_offsets`` are cut so that no generation is skipped, and no more often."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.polls.batch import Record, decode_batch, decode_records, in_parts
from caughtup.models.polls.generations import split_generations as split_records
from caughtup.models.polls.records import ListedRecords, Records
from caughtup.models.wire.record_keys import RecordType
from tests.support.groups.coordinator import PlayedGroup
from tests.support.groups.records import GROUP, START_MS, commit, group_tombstone
from tests.support.groups.streams import WARMING, generation
from tests.support.states import publish, state_with_ends

RECORDS: list[Record] = [
    generation(1, *WARMING),
    generation(2, *WARMING),
    generation(1, *WARMING, group="other"),
    group_tombstone(),
    commit(0, 5),
    commit(0, 6),
    (None, b"a record without a key"),
    (b"\x00", b"a key without a type"),
]

TOPICS = {"t": (b"t" * 16, 3)}
TARGET = int(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER).to_bytes(2)


def listed(records: list[Record]) -> ListedRecords:
    return ListedRecords([key for key, _ in records], [value for _, value in records])


def pairs(records: Records) -> list[Record]:
    return list(zip(records.keys(), records.values(), strict=True))


def split_generations(records: list[Record], most: int = 1_000) -> list[list[Record]]:
    return [pairs(part) for part in split_records(listed(records), most)]


def test_no_part_is_larger_than_it_may_be() -> None:
    first, second, one_commit = RECORDS[0], RECORDS[1], RECORDS[4]
    poll = [first, *[one_commit] * 5, second, one_commit]
    sizes = [len(part) for part in split_generations(poll, 4)]
    assert sizes == [4, 2, 2]
    assert [len(part) for part in in_parts(listed(poll), 3)] == [3, 3, 2]


def test_a_generation_has_the_offset_of_its_record() -> None:
    poll = [RECORDS[4], RECORDS[0], RECORDS[2], RECORDS[5], RECORDS[1]]
    records = replace(listed(poll), offset=np.array([3, 5, 8, 9, 14]))
    found = [decode_records(part).group_offsets for part in split_records(records)]
    assert found == [{GROUP: 5, "other": 8}, {GROUP: 14}]
    assert decode_records(listed(poll)).group_offsets == {}


def test_a_poll_with_each_group_once_stays_whole() -> None:
    poll = [RECORDS[0], RECORDS[4], RECORDS[2], RECORDS[5]]
    assert split_generations(poll) == [poll]


def test_a_poll_is_cut_where_a_groups_metadata_comes_again() -> None:
    first, second, other = RECORDS[:3]
    one_commit = RECORDS[4]
    poll = [first, other, one_commit, second, one_commit, first]
    assert split_generations(poll) == [
        [first, other, one_commit],
        [second, one_commit],
        [first],
    ]


def test_a_tombstone_between_two_generations_is_one_of_them() -> None:
    first, second, tombstone = RECORDS[0], RECORDS[1], RECORDS[3]
    assert split_generations([first, tombstone, second]) == [[first], [tombstone], [second]]


def test_an_empty_poll_has_no_chunks() -> None:
    assert split_generations([]) == []


@settings(print_blob=True, deadline=None)
@given(st.lists(st.sampled_from(RECORDS)))
def test_nothing_is_lost_reordered_or_twice_in_a_chunk(poll: list[Record]) -> None:
    chunks = split_generations(poll)
    assert [record for chunk in chunks for record in chunk] == poll
    group_keys = {record[0] for record in RECORDS[:4]}
    for before, chunk in zip([[], *chunks], chunks, strict=False):
        keys = [key for key, _ in chunk if key in group_keys]
        assert chunk
        assert len(set(keys)) == len(keys)
        assert not before or chunk[0][0] in {key for key, _ in before}


@settings(print_blob=True, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 4, 5]), max_size=12))
def test_every_generation_of_a_poll_is_decided(picked: list[int]) -> None:
    """Generations are numbered on as they come, as a group does."""
    poll: list[Record] = []
    expected: list[int] = []
    for number, pick in enumerate(picked):
        if pick in (0, 1):
            poll.append(generation(number, *WARMING, at_ms=START_MS + number))
            expected.append(number)
        else:
            poll.append(RECORDS[pick])
    state = state_with_ends()
    for chunk in split_generations(poll):
        state.apply_batch(decode_batch(chunk), START_MS + 50)
    decided = [r["generation"] for r in publish(state, START_MS + 50) if r["group"] == GROUP]
    assert decided == expected


def test_a_part_ends_with_a_group_as_its_coordinator_saw_it() -> None:
    group, other = PlayedGroup("g", topics=TOPICS), PlayedGroup("other", topics=TOPICS)
    polls: list[list[Record]] = []
    for played, member in ((group, "a"), (other, "x"), (group, "b")):
        played.join(member, ["t"])
        polls.append(played.take())
    group.leave("a")
    polls.append(group.take())
    group.join("a", ["t"])
    polls.append(group.take())
    first, others, second, leaves, again = polls
    assert split_generations([*first, *others]) == [[*first, *others]]
    assert split_generations([*first, *others, *second]) == [[*first, *others], second]
    cut = next(n for n, (key, _) in enumerate(leaves) if key and key[:2] == TARGET)
    assert split_generations([*second, *leaves, *again]) == [
        [*second, *leaves[:cut]],
        [*leaves[cut:], *again[:1]],
        again[1:],
    ]
