"""org.apache.kafka.timeline.TimelineHashMap: the order in which a coordinator iterates over members.

A group's members are in one; an assignor gets them in a HashMap that is filled from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from caughtup.models.assignors.java.strings import hash_code, in_hash_map_order

_WORD, _SIGN = 1 << 32, 1 << 31
_DOUBLE_WORD = 1 << 64
_FACTOR = -7046029254386353131
#: How many times more buckets a table may have than its members need: it never shrinks.
_GROWN = 2


def in_timeline_order(texts: Iterable[str], grown: int = 0) -> list[str]:
    """Return different strings, added in this order, in the order of a TimelineHashMap's keys.

    ``grown``: how often the table doubled for strings that are gone.

    Source: BaseHashTable and SnapshottableHashTable.CurrentIterator of Kafka 4.3.1.
    """
    added = list(texts)[::-1]  # of a bucket's keys, the last that was added comes first
    bits = _bits(len(added)) + grown
    return sorted(added, key=lambda text: _bucket(text, bits))


def _bits(size: int) -> int:
    """Return the number of bits of a bucket's number, in a table for this many keys."""
    table = 2
    while size * 3 > table * 4:
        table *= 2
    return table.bit_length() - 1


def _bucket(text: str, bits: int) -> int:
    code = hash_code(text)
    signed = code - _WORD if code >= _SIGN else code
    return signed * _FACTOR % _DOUBLE_WORD >> 64 - bits


def orders_of_members(members: Sequence[str], new: Iterable[str]) -> Iterator[list[str]]:
    """Yield the orders in which a coordinator's assignor may get members, the likeliest first.

    ``members`` are in the order in which the group got them; ``new`` are those that may have joined
    with the heartbeat for which the assignment was computed: such a member is added last. Only the
    order within buckets of a HashMap differs between them.
    """
    last = set(new)
    found: set[tuple[str, ...]] = set()
    for grown in range(_GROWN + 1):
        walked = in_timeline_order(members, grown)
        joined = [name for name in walked if name in last]
        ends = [[one] for one in joined] if len(joined) > 1 else []
        for end in (joined, [], *ends):
            given = in_hash_map_order([name for name in walked if name not in end] + end)
            if tuple(given) not in found:
                found.add(tuple(given))
                yield given


def is_order_certain(members: Sequence[str]) -> bool:
    """Return whether the order of members depends only on their ids, and on which of them is new.

    It depends on the order in which they joined if two are in the same bucket of both tables.
    """
    table = 16
    while len(members) > table * 3 // 4:
        table *= 2
    bits = _bits(len(members))
    places: set[tuple[int, int]] = set()
    for name in members:
        code = hash_code(name)
        places.add(((code ^ code >> 16) & table - 1, _bucket(name, bits)))
    return len(places) == len(members)
