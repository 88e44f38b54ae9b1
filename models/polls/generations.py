"""Parts a poll of ``__consumer_offsets`` where a batch would drop a generation or an assignment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np

from caughtup.models.polls.batch import in_parts, types_of
from caughtup.models.polls.records import Records
from caughtup.models.wire.record_keys import RecordType

_TYPE_BYTES, _LENGTH_BYTES = 2, 2
_GROUP_METADATA = int(RecordType.GROUP_METADATA)
#: The types of the records that complete a target assignment, on each of the new protocols.
_COMPLETES = {
    int(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA),
    int(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA),
}
#: The types of which a part has each key once: epochs, and members' target assignments.
_ONCE = {
    _GROUP_METADATA,
    int(RecordType.CONSUMER_GROUP_METADATA),
    int(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
    int(RecordType.STREAMS_GROUP_METADATA),
    int(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
}
#: The types of what a coordinator assigns by: a later record is of the next assignment. By the current
#: assignments only those of streams groups are assigned, on brokers of 4.4.
_INPUTS = {
    int(RecordType.CONSUMER_GROUP_MEMBER_METADATA),
    int(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION),
    int(RecordType.STREAMS_GROUP_MEMBER_METADATA),
    int(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    int(RecordType.STREAMS_GROUP_TOPOLOGY),
}
_LOOKED_AT = sorted(_ONCE | _COMPLETES | _INPUTS)


def split_generations(
    records: Records, most: int = 1 << 31, groups: Collection[str] | None = None
) -> Iterator[Records]:
    """Yield the parts of a poll, none of which has two generations or target assignments of a group.

    A batch keeps the last value of each key, which would drop generations. On the new protocols a
    part has no record of the next assignment after one that completes an assignment, so that a part
    which completes one has a group as the coordinator saw it then; and it has no epoch and no
    member's target assignment twice. No part has more than ``most`` records. With ``groups``, only
    their generations are parted.
    """
    if len(records) == 1:
        yield records
        return
    types = types_of(records)
    is_looked_at = np.isin(types, _LOOKED_AT)
    rows = np.flatnonzero(is_looked_at).tolist()
    cuts = [0]
    if len(rows) > 1:
        keys = records.select(is_looked_at).keys()
        wanted = None if groups is None else {group.encode() for group in groups}
        cuts += _cuts(rows, types[is_looked_at].tolist(), keys, wanted)
    for begin, end in pairwise([*cuts, len(records)]):
        yield from in_parts(records.select(slice(begin, end)), most)


def _cuts(
    rows: Sequence[int],
    types: Sequence[int],
    keys: Sequence[bytes | None],
    wanted: Collection[bytes] | None,
) -> Iterator[int]:
    """Yield the rows before which a poll is cut."""
    once: set[bytes] = set()
    complete: set[bytes] = set()
    for row, key_type, key in zip(rows, types, keys, strict=True):
        if key is None:
            continue
        group = _group_of(key)
        if wanted is not None and group not in wanted:
            continue
        is_once = key_type in _ONCE
        of_next = key_type != _GROUP_METADATA and group in complete
        if of_next or (is_once and key in once):
            yield row
            once.clear()
            complete.clear()
        if is_once:
            once.add(key)
        if key_type in _COMPLETES:
            complete.add(group)


def _group_of(key: bytes) -> bytes:
    """Return the group's name in a key, with which all of these keys begin after the type."""
    begin = _TYPE_BYTES + _LENGTH_BYTES
    return key[begin : begin + int.from_bytes(key[_TYPE_BYTES:begin])]
