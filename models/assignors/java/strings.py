"""java.lang.String: its order and its hash code, on which the order of members depends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import mul

from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table

_WORD = (1 << 32) - 1
#: Powers of 31: the factor of each character in the hash code, counted from the string's end.
_POWERS = tuple(pow(31, exponent, _WORD + 1) for exponent in range(256))
#: Member ids are rarely longer.
_SHORT = 128
#: A bucket with this many keys may become a tree, which changes the order of its keys.
_CROWDED = 9


def utf16(text: str) -> bytes:
    """Encode a string so that bytes compare as String.compareTo does: by UTF-16 code units.

    Python compares by code points, whose order differs beyond U+FFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def in_string_order(texts: Iterable[str]) -> list[str]:
    """Return strings in the order of String.compareTo."""
    ordered = sorted(texts)
    # Python's order is another one only beyond U+FFFF.
    if all(text.isascii() for text in ordered):
        return ordered
    return sorted(ordered, key=utf16)


def in_hash_map_order(texts: Iterable[str], maps: int = 1, capacity: int = 16) -> list[str]:
    """Return different strings, added in this order, in the order of a HashMap's keys.

    ``maps`` is the number of maps, each filled by iterating over the one before. ``capacity`` is
    their initial capacity.
    """
    order = list(texts)
    codes = {text: hash_code(text) for text in order}
    for _ in range(maps):
        order = _walk(order, codes, 1 << max(capacity - 1, 0).bit_length())
    return order


def in_computed_map_order(texts: Iterable[str], capacity: int) -> list[str]:
    """Return strings in the order of a HashMap to which ``computeIfAbsent`` added them.

    ``texts`` has a string once for each call. ``capacity`` is the map's initial capacity.
    """
    calls = [(utf16(text), text) for text in texts]
    by_key = dict(calls)
    table = JavaHashMap[bytes](
        lambda key: hash_code(by_key[key]), 1 << max(capacity - 1, 0).bit_length()
    )
    for key, _ in calls:
        table.compute(key)
    return [by_key[key] for key in table]


def in_hash_set_order(texts: Sequence[str]) -> list[str]:
    """Return strings in the order of a HashSet that is made of a collection of them."""
    order = list(dict.fromkeys(texts))
    codes = {text: hash_code(text) for text in order}
    return _walk(order, codes, copied_table(len(texts)))


def coordinator_partition(group: str, partitions: int) -> int:
    """Return the partition of ``__consumer_offsets`` whose leader coordinates a group.

    ``partitions`` is how many that topic has. Source: ``partitionFor`` of Kafka's group coordinator,
    and ``Utils.abs``, which returns 0 for Java's least integer.
    """
    code = hash_code(group)
    return min(code, (1 << 32) - code) % (1 << 31) % partitions


def hash_code(text: str) -> int:
    """Return String.hashCode, as an unsigned number of 32 bits.

    Those of short strings are cached, since they recur in each rebalance.
    """
    return _kept_hash_code(text) if len(text) <= _SHORT else _hash_code(text)


def _hash_code(text: str) -> int:
    units: Sequence[int]
    if text.isascii():
        units = text.encode("ascii")
    else:
        encoded = utf16(text)
        units = [high << 8 | low for high, low in zip(encoded[::2], encoded[1::2], strict=True)]
    code = 0
    for start in range(0, len(units), len(_POWERS) - 1):
        piece = units[start : start + len(_POWERS) - 1]
        code = code * _POWERS[len(piece)] + sum(map(mul, reversed(piece), _POWERS)) & _WORD
    return code


_kept_hash_code = lru_cache(maxsize=4096)(_hash_code)


def _walk(texts: list[str], codes: Mapping[str, int], table: int) -> list[str]:
    """Return strings, added in this order, in the order of a table of first ``table`` buckets."""
    spread = [codes[text] ^ codes[text] >> 16 for text in texts]
    if _crowds(spread, table):
        by_key = {utf16(text): text for text in texts}
        walked = JavaHashMap[bytes](lambda key: codes[by_key[key]], table, by_key)
        return [by_key[key] for key in walked]
    while len(texts) > table * 3 // 4:
        table *= 2
    mask = table - 1
    buckets = {text: one & mask for text, one in zip(texts, spread, strict=True)}
    return sorted(texts, key=buckets.__getitem__)


def _crowds(spread: Sequence[int], table: int) -> bool:
    """Return whether a bucket gets crowded at any size that the table has while it grows."""
    while len(spread) >= _CROWDED:
        mask = table - 1
        filled = spread[: table * 3 // 4 + 1]
        if max(Counter([one & mask for one in filled]).values()) >= _CROWDED:
            return True
        if len(filled) == len(spread):
            break
        table *= 2
    return False
