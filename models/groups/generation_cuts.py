"""Where a poll of ``__consumer_offsets`` is cut, so that no generation in it is skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: How the key of a group's metadata starts: key type 2.
_GROUP_KEY = b"\x00\x02"

Records = list[tuple[bytes | None, bytes | None]]


def split_generations(records: Sequence[tuple[bytes | None, bytes | None]]) -> Iterator[Records]:
    """Yield the parts of a poll, cut where a group's metadata comes again.

    A batch keeps the last value of each key, which is right for everything but generations.
    """
    chunk: Records = []
    seen: set[bytes] = set()
    for record in records:
        key = record[0]
        if key is not None and key.startswith(_GROUP_KEY):
            if key in seen:
                yield chunk
                chunk, seen = [], set()
            seen.add(key)
        chunk.append(record)
    if chunk:
        yield chunk
