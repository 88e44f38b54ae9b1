"""org.apache.kafka.common.Uuid: its order and its hash code, on which the order of topics depends."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from caughtup.models.assignors.java.hash_map import in_hash_order

_HALVES = struct.Struct(">QQ")
_SIGNED_HALVES = struct.Struct(">qq")
_WORD = (1 << 32) - 1


def uuid_hash_code(uuid: bytes) -> int:
    """Return Uuid.hashCode of 16 bytes, as an unsigned number of 32 bits."""
    high, low = _HALVES.unpack(uuid)
    folded: int = high ^ low
    return (folded >> 32 ^ folded) & _WORD


def uuid_order(uuid: bytes) -> tuple[int, int]:
    """Return a key that sorts as Uuid.compareTo does: by two signed halves."""
    high, low = _SIGNED_HALVES.unpack(uuid)
    return high, low


def uuids_in_hash_order(uuids: Iterable[bytes], table: int = 16) -> list[bytes]:
    """Return different UUIDs, added in this order, in the order of a HashMap's keys.

    ``table`` is the map's initial number of buckets.
    """
    added: Sequence[bytes] = list(uuids)
    return in_hash_order(uuid_hash_code, added, table)
