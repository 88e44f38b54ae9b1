"""What the calls share: decode answers, choose versions, explain failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)

from caughtup.agents.kafka.protocol.cluster_answers import ApiVersions
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.errors import DecodeError

#: An answer from this size on is decoded in a thread, to keep the event loop free.
_LARGE_BYTES = 16_384

Decoded = TypeVar("Decoded")


def choose_version(offered: ApiVersions, key: Key, wanted: Sequence[int]) -> int:
    """Choose the first wanted version that a broker offers. Raises UnsupportedVersionError."""
    if key not in offered.requests:
        raise UnsupportedVersionError(f"the broker does not support {key.request}")
    least, greatest = offered.requests[key]
    for version in wanted:
        if least <= version <= greatest:
            return version
    versions = " or ".join(map(str, sorted(wanted)))
    raise UnsupportedVersionError(
        f"the broker does not support {key.request} {versions}: it offers {least} to {greatest}"
    )


def explain_failure(error: KafkaError, operation: str = "DESCRIBE") -> str:
    """Explain in a few words why a call failed; ``operation`` is the ACL that the call needs."""
    if isinstance(error, ClusterAuthorizationFailedError):
        return f"missing: {operation} on the cluster"
    if isinstance(error, TopicAuthorizationFailedError):
        return f"missing: {operation} on the topic"
    return str(error.args[0]) if error.args else type(error).__name__


async def decode(decoder: Callable[[bytes], Decoded], data: bytes) -> Decoded:
    """Decode an answer, a large one in a thread. Raises KafkaError if it is malformed."""
    if len(data) < _LARGE_BYTES:
        return decode_now(decoder, data)
    return await asyncio.to_thread(decode_now, decoder, data)


def decode_now(decoder: Callable[[bytes], Decoded], data: bytes) -> Decoded:
    """Decode an answer in this thread. Raises KafkaError if it is malformed."""
    try:
        return decoder(data)
    except DecodeError as error:
        raise KafkaError(f"an answer that can't be read: {error}") from None
