"""Records of an offset topic."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.records.connect.reading import MOST_BYTES, MOST_KEY_BYTES
from caughtup.models.records.decoding import BAD_KEY, TOO_LARGE, RefusedError, require_bounded


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A source stored an offset of a partition, given as a digest; ``removed``: it was reset."""

    connector: str
    partition: bytes
    removed: bool


_source = msgspec.json.Decoder(tuple[str, msgspec.Raw])


def decode_source_offset(key: bytes | None, value: bytes | None) -> SourceOffset:
    """Return the connector and partition of an offset topic's record, not the offset.

    Raises RefusedError. Source: Connect's ``OffsetStorageWriter``.
    """
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if value is not None and len(value) > MOST_BYTES:
        raise RefusedError(TOO_LARGE, f"{len(value):,} bytes, more than {MOST_BYTES:,}")
    require_bounded(key, MOST_KEY_BYTES)
    try:
        connector, _ = _source.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_KEY, "no key of an offset topic") from None
    return SourceOffset(connector, blake2b(key, digest_size=16).digest(), value is None)
