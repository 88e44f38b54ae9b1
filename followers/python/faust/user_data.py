"""User data of Faust workers: those of a follower, followed by Faust's own.

Readers of Kafka Streams' user data stop at the end of the follower's part, like Kafka Streams, and
need not know of Faust.
"""

from __future__ import annotations

import logging
import struct
import zlib

from faust.assignor.client_assignment import ClientMetadata

from caughtup.models.errors import DecodeError

log = logging.getLogger("caughtup.followers")

_TAIL = struct.Struct(">I5s")  # the number of bytes before it, and a mark
_FAUST = b"faust"


def join_user_data(followers: bytes, fausts: bytes) -> bytes:
    """Encode user data: a follower's, followed by Faust's, compressed."""
    packed = zlib.compress(fausts)
    return b"".join((followers, packed, _TAIL.pack(len(packed), _FAUST)))


def split_user_data(data: bytes | None) -> tuple[bytes, bytes]:
    """Split user data into a follower's and Faust's.

    Raises DecodeError: ``not_faust`` for user data without Faust's, ``truncated`` or ``corrupt``
    for damaged ones.
    """
    whole = data or b""
    if not whole.endswith(_FAUST) or len(whole) < _TAIL.size:
        raise DecodeError("not_faust", "the user data weren't written by a Faust worker")
    length, _ = _TAIL.unpack(whole[-_TAIL.size :])
    followers_end = len(whole) - _TAIL.size - length
    if followers_end < 0:
        raise DecodeError(
            "truncated", f"{length} bytes of Faust's user data, but not as many there"
        )
    try:
        fausts = zlib.decompress(whole[followers_end : -_TAIL.size])
    except zlib.error as error:
        raise DecodeError("corrupt", f"Faust's user data: {error}") from None
    return whole[:followers_end], fausts


def read_worker(user_data: bytes | None) -> tuple[bytes, str]:
    """Return a member's user data as a follower, and its web address.

    The address is empty for a member that is not a Faust worker.
    """
    try:
        followers, fausts = split_user_data(user_data)
        return followers, str(ClientMetadata.loads(fausts).url)
    except Exception:
        log.warning("a member isn't known to be a Faust worker", exc_info=True)
        return user_data or b"", ""
