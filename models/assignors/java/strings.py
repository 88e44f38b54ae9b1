"""java.lang.String, as far as its order and its hash code decide about members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table

_WORD = (1 << 32) - 1


def utf16(text: str) -> bytes:
    """Encode a string so that bytes compare as String.compareTo does: by UTF-16 code units.

    Python compares by code points, which differs for characters beyond U+FFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def in_hash_map_order(texts: Iterable[str]) -> list[str]:
    """Order different strings as a HashMap walks its keys, to which they were added like that."""
    by_code = {utf16(text): text for text in texts}
    return [by_code[key] for key in JavaHashMap[bytes](_hash_code, keys=by_code)]


def in_hash_set_order(texts: Sequence[str]) -> list[str]:
    """Order different strings as a HashSet walks them that is made of a collection of them."""
    by_code = {utf16(text): text for text in texts}
    table = copied_table(len(texts))
    return [by_code[key] for key in JavaHashMap[bytes](_hash_code, table, by_code)]


def _hash_code(encoded: bytes) -> int:
    """Return String.hashCode of an encoded string, as an unsigned number of 32 bits."""
    code = 0
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & _WORD
    return code
