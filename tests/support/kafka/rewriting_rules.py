"""What the network of rewriting.py rewrites: which requests are offered, refused, cut and damaged."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence

from caughtup.agents.kafka.protocol.requests import DEBUGGING_REPLICA, Key, flexible_string
from caughtup.models.wire.reader import Reader
from tests.support.kafka.rewriting import Answer, CutError, OfferedApi, Rule, read_offered

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_OFFERED = struct.Struct(">hhh")
#: The first versions with compact strings: of ApiVersions, of OffsetFetch for many groups.
_FLEXIBLE_API_VERSIONS, _MANY_GROUPS = 3, 8
#: The first versions of ListGroups with groups' states, and with their types.
_STATES, _TYPES = 4, 5
_EMPTY_ARRAY, _NO_TAGS = b"\1", b"\0"
#: Kafka's error code of a broker that doesn't lead a partition.
_NOT_LEADER = 6

#: What is offered of a request: all versions up to one, those between two, or none at all.
Versions = int | tuple[int, int] | None


def offering(
    most: Mapping[Key, Versions] | Mapping[int, Versions],
    nodes: Sequence[int] | None = None,
    *,
    others: bool = True,
) -> Rule:
    """Return a rule by which brokers offer some requests in these versions only.

    ``others``: whether they offer what is not named here. If not, they tell of no features either.
    """
    limits: dict[int, Versions] = {int(key): versions for key, versions in most.items()}

    def limited(one: OfferedApi) -> OfferedApi | None:
        if one.key not in limits:
            return one if others else None
        versions = limits[one.key]
        if versions is None:
            return None
        least, greatest = (one.least, versions) if isinstance(versions, int) else versions
        return OfferedApi(one.key, max(least, one.least), min(greatest, one.greatest))

    def rule(answer: Answer) -> bytes:
        if answer.key != Key.API_VERSIONS or (nodes is not None and answer.node not in nodes):
            return answer.body
        flexible = answer.version >= _FLEXIBLE_API_VERSIONS
        offered = read_offered(answer.body, answer.version)
        tags = _NO_TAGS if flexible else b""
        size = (_OFFERED.size + len(tags)) * len(offered)
        length = _uvarint(len(offered) + 1) if flexible else _INT32.pack(len(offered))
        kept = [entry for one in offered if (entry := limited(one)) is not None]
        new = _uvarint(len(kept) + 1) if flexible else _INT32.pack(len(kept))
        entries = b"".join(_OFFERED.pack(*one) + tags for one in kept)
        rest = answer.body[2 + len(length) + size :]
        if flexible and not others:
            rest = rest[: _INT32.size] + _NO_TAGS
        return answer.body[:2] + new + entries + rest

    return rule


def _uvarint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])


def failing(group: str, code: int, *keys: Key) -> Rule:
    """Return a rule by which what is asked about a group is answered with an error code.

    ``keys``: of these requests; whatever it is without any.
    """
    name = flexible_string(group)

    def rule(answer: Answer) -> bytes:
        body = answer.body
        if keys and answer.key not in keys:
            return body
        if answer.key == Key.DESCRIBE_GROUPS:
            return body.replace(bytes(2) + name, _INT16.pack(code) + name)
        if answer.key in (Key.CONSUMER_GROUP_DESCRIBE, Key.STREAMS_GROUP_DESCRIBE):
            return body.replace(bytes(3) + name, _INT16.pack(code) + b"\0" + name)
        if answer.key == Key.OFFSET_FETCH and answer.version >= _MANY_GROUPS:
            for start, end, of in _fetched(body):
                if of == group:
                    refused = name + _EMPTY_ARRAY + _INT16.pack(code) + b"\0"
                    return body[:start] + refused + body[end:]
        return body

    return rule


def failing_partition(group: str, partition: int, code: int) -> Rule:
    """Return a rule by which a group's commit of a partition is answered with an error code."""

    def rule(answer: Answer) -> bytes:
        if answer.key != Key.OFFSET_FETCH or answer.version < _MANY_GROUPS:
            return answer.body
        for start, end, of in _fetched(answer.body):
            if of != group:
                continue
            body = bytearray(answer.body)
            reader = Reader(answer.body, flexible=True)
            reader.take(start)
            reader.string()
            for _ in range(reader.array_length(1)):
                reader.string()
                for _ in range(reader.array_length(1)):
                    number, at = reader.int32(), reader.position
                    reader.int64(), reader.int32()
                    reader.nullable_string()
                    if number == partition:
                        _INT64.pack_into(body, at, -1)
                        _INT16.pack_into(body, reader.position, code)
                    reader.int16()
                    reader.tagged_fields()
                reader.tagged_fields()
            assert reader.position < end
            return bytes(body)
        return answer.body

    return rule


def _fetched(body: bytes) -> list[tuple[int, int, str]]:
    """Return where each group is in an answer to OffsetFetch from version 8 on."""
    reader, found = Reader(body, flexible=True), []
    reader.tagged_fields()  # of the header
    reader.int32()
    for _ in range(reader.array_length(1)):
        start, group = reader.position, reader.string()
        for _ in range(reader.array_length(1)):
            reader.string()
            for _ in range(reader.array_length(1)):
                reader.int32(), reader.int64(), reader.int32()
                reader.nullable_string()
                reader.int16()
                reader.tagged_fields()
            reader.tagged_fields()
        reader.int16()
        reader.tagged_fields()
        found.append((start, reader.position, group))
    return found


def garbled(group: str, *keys: Key) -> Rule:
    """Return a rule by which answers about a group can't be read, nor what else is in them."""
    name = flexible_string(group)

    def rule(answer: Answer) -> bytes:
        if answer.key in keys:
            return answer.body.replace(name, name[:1] + b"\xff" * (len(name) - 1))
        return answer.body

    return rule


def cut(*keys: Key, about: str = "", nodes: Sequence[int] | None = None) -> Rule:
    """Return a rule by which the answers to some requests, about a group, end in their middle."""

    def rule(answer: Answer) -> bytes:
        if (
            answer.key in keys
            and about.encode() in answer.request
            and (nodes is None or answer.node in nodes)
        ):
            raise CutError
        return answer.body

    return rule


def damaged(choices: random.Random, *keys: Key) -> Rule:
    """Return a rule by which every second answer to some requests is damaged, each in another way."""

    def rule(answer: Answer) -> bytes:
        if answer.key not in keys or choices.random() > 0.5:
            return answer.body
        body = bytearray(answer.body)
        at = choices.randrange(len(body))
        match choices.choice(["flipped", "cut", "zero", "length", "repeated"]):
            case "flipped":
                for _ in range(choices.randint(1, 8)):
                    body[choices.randrange(len(body))] = choices.randrange(256)
            case "cut":
                del body[at:]
            case "zero":
                body[at : at + 8] = bytes(len(body[at : at + 8]))
            case "length":
                body[at : at + 4] = b"\xff\xff\xff\x0f"[: len(body[at : at + 4])]
            case "repeated":
                body[at:at] = body[at : at + 20]
        return bytes(body)

    return rule


def throttled(milliseconds: int, *keys: Key) -> Rule:
    """Return a rule by which brokers say that they make the client wait, a little less each time."""
    left = [milliseconds]

    def rule(answer: Answer) -> bytes:
        if answer.key not in keys:
            return answer.body
        left[0] -= 1
        return answer.body[:1] + _INT32.pack(left[0]) + answer.body[5:]  # after the header's tags

    return rule


def without_replicas(led_by: int) -> Rule:
    """Return a rule by which brokers other than the leader (0: the first one) tell no replica's log end.

    They answer ListOffsets version 1 so for any replica, as a follower does that is asked as the leader.
    """

    def rule(answer: Answer) -> bytes:
        if answer.key != Key.LIST_OFFSETS or answer.node == led_by:
            return answer.body
        (client,) = _INT16.unpack_from(answer.request)
        (replica,) = _INT32.unpack_from(answer.request, _INT16.size + client)
        if replica != DEBUGGING_REPLICA:
            return answer.body
        body, reader = bytearray(answer.body), Reader(answer.body)
        for _ in range(reader.array_length(1)):
            reader.string()
            for _ in range(reader.array_length(1)):
                reader.int32()
                _INT16.pack_into(body, reader.position, _NOT_LEADER)
                reader.int16(), reader.int64(), reader.int64()
        return bytes(body)

    return rule


def listing(keep: Callable[[str, str], bool]) -> Rule:
    """Return a rule by which brokers list only the groups that ``keep`` takes by name and state."""

    def rule(answer: Answer) -> bytes:
        if answer.key != Key.LIST_GROUPS:
            return answer.body
        reader = Reader(answer.body, flexible=True)
        reader.tagged_fields()
        reader.int32()
        reader.int16()
        at = reader.position
        kept = []
        for _ in range(reader.array_length(1)):
            start, name = reader.position, reader.string()
            reader.string()
            state = reader.string() if answer.version >= _STATES else ""
            if answer.version >= _TYPES:
                reader.string()
            reader.tagged_fields()
            if keep(name, state):
                kept.append(answer.body[start : reader.position])
        return answer.body[:at] + _uvarint(len(kept) + 1) + b"".join(kept) + _NO_TAGS

    return rule


def without_groups(*groups: str) -> Rule:
    """Return a rule by which brokers list none of some groups, or without any no group at all."""
    return listing(lambda name, _: bool(groups) and name not in groups)


def dead_without_members() -> Rule:
    """Return a rule by which a classic group without members is neither listed nor described."""
    listed = listing(lambda _, state: state != "Empty")

    def rule(answer: Answer) -> bytes:
        if answer.key == Key.DESCRIBE_GROUPS:
            return answer.body.replace(flexible_string("Empty"), flexible_string("Dead"))
        return listed(answer)

    return rule


def refused(key: Key, code: int, nodes: Sequence[int] | None = None) -> Rule:
    """Return a rule by which a request is answered with an error code and nothing else.

    It is for flexible answers of an error code and an array, most of which begin with how long to wait.
    """

    def rule(answer: Answer) -> bytes:
        if answer.key != key or (nodes is not None and answer.node not in nodes):
            return answer.body
        waits = 0 if key is Key.DESCRIBE_QUORUM else _INT32.size
        head = answer.body[: len(_NO_TAGS) + waits]
        return head + _INT16.pack(code) + _EMPTY_ARRAY + _NO_TAGS

    return rule
