"""A network between clients and brokers that rewrites what brokers answer, by request.

Metadata is rewritten so that clients come back: every broker's address becomes that of its port here.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from caughtup.agents.kafka.protocol.requests import Key, flexible_string
from caughtup.demo.processes.children import ClosedOnExit, free_ports
from caughtup.models.wire.reader import Reader

_LENGTH, _HEADER = struct.Struct(">i"), struct.Struct(">hhi")
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_HOST = b"127.0.0.1"
_ADDRESSED = (Key.METADATA, Key.FIND_COORDINATOR, Key.DESCRIBE_CLUSTER)
#: An API of none of Kafka's keys.
_NOWHERE = 9_999
#: The first versions with compact strings: of ApiVersions, of OffsetFetch for many groups.
_FLEXIBLE_API_VERSIONS, _MANY_GROUPS = 3, 8
_EMPTY_TOPICS = b"\1"


class CutError(Exception):
    """The answer ends in its middle, and the connection with it."""


class Answer(NamedTuple):
    """An answer without its header, and the request that it is for; ``node`` is who gave it."""

    node: int
    key: int
    version: int
    request: bytes
    body: bytes


#: What is answered instead; raises CutError.
Rule = Callable[[Answer], bytes]


class Rewriting(ClosedOnExit):
    """Stands before each of some brokers, which all are on this machine.

    ``rules`` are applied in their order to each answer, and may be replaced at any time.
    ``one_address``: clients see all brokers at the first port, where connections go to each in turn.
    """

    def __init__(self, servers: str, *rules: Rule, one_address: bool = False) -> None:
        self.rules: Sequence[Rule] = rules
        #: The number of requests, by key.
        self.requests = Counter[int]()
        self._inner = [int(address.rpartition(":")[2]) for address in servers.split(",")]
        self._outer = free_ports(len(self._inner))
        if one_address:
            self._outer = self._outer[:1] * len(self._inner)
        self._one_address, self._connected = one_address, 0
        self._addresses = {
            _HOST + _INT32.pack(inner): _HOST + _INT32.pack(outer)
            for inner, outer in zip(self._inner, self._outer, strict=True)
        }
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="rewriting", daemon=True
        )
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for clients."""
        return ",".join(dict.fromkeys(f"127.0.0.1:{port}" for port in self._outer))

    def close(self) -> None:
        """Stop, and drop every connection; do nothing the second time."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        for node, port in enumerate(dict.fromkeys(self._outer)):
            self._servers.append(
                await asyncio.start_server(self._accepted(node), "127.0.0.1", port)
            )

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports are closed in the next turn

    def _accepted(
        self, node: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            at = node
            if self._one_address:
                at, self._connected = self._connected % len(self._inner), self._connected + 1
            try:
                inner = await asyncio.open_connection("127.0.0.1", self._inner[at])
            except OSError:
                writer.close()
                return
            asked: dict[int, tuple[int, int, bytes]] = {}
            pumps = [
                asyncio.ensure_future(self._requests(reader, inner[1], asked)),
                asyncio.ensure_future(self._answers(at, inner[0], writer, asked)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                for end in (writer, inner[1]):
                    end.close()

        return connected

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: dict[int, tuple[int, int, bytes]],
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                key, version, number = _HEADER.unpack_from(frame)
                self.requests[key] += 1
                asked[number] = key, version, frame[_HEADER.size :]
                writer.write(_LENGTH.pack(len(frame)) + frame)
                await writer.drain()

    async def _answers(
        self,
        node: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: dict[int, tuple[int, int, bytes]],
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                (number,) = _INT32.unpack_from(frame)
                key, version, request = asked.pop(number)
                head, body = frame[: _INT32.size], frame[_INT32.size :]
                if key in _ADDRESSED:
                    for inner, outer in self._addresses.items():
                        body = body.replace(inner, outer)
                try:
                    for rule in self.rules:
                        body = rule(Answer(node, key, version, request, body))
                except CutError:
                    half = head + body[: len(body) // 2]
                    writer.write(_LENGTH.pack(len(head) + len(body)) + half)
                    await writer.drain()
                    return
                writer.write(_LENGTH.pack(len(head) + len(body)) + head + body)
                await writer.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


def offering(most: Mapping[Key, int | None], nodes: Sequence[int] | None = None) -> Rule:
    """Return a rule by which brokers offer no newer version of some requests, None for none at all."""

    def rule(answer: Answer) -> bytes:
        if answer.key != Key.API_VERSIONS or (nodes is not None and answer.node not in nodes):
            return answer.body
        flexible = answer.version >= _FLEXIBLE_API_VERSIONS
        reader = Reader(answer.body, flexible=flexible)
        reader.int16()
        body = bytearray(answer.body)
        for _ in range(reader.array_length(6)):
            at = reader.position
            key = reader.int16()
            reader.int32()
            reader.tagged_fields()
            if key in most:
                version = most[Key(key)]
                place, value = (at, _NOWHERE) if version is None else (at + 4, version)
                _INT16.pack_into(body, place, value)
        return bytes(body)

    return rule


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
                    refused = name + _EMPTY_TOPICS + _INT16.pack(code) + b"\0"
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


def without_groups(*groups: str) -> Rule:
    """Return a rule by which brokers list none of some groups, or without any no group at all."""

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
            for _ in range(3 if answer.version >= 5 else 2):
                reader.string()
            reader.tagged_fields()
            if groups and name not in groups:
                kept.append(answer.body[start : reader.position])
        assert len(kept) < 0x7F
        return answer.body[:at] + bytes([len(kept) + 1]) + b"".join(kept) + b"\0"

    return rule


def refused(key: Key, code: int, nodes: Sequence[int] | None = None) -> Rule:
    """Return a rule by which ListGroups is refused."""

    def rule(answer: Answer) -> bytes:
        if answer.key != key or (nodes is not None and answer.node not in nodes):
            return answer.body
        return answer.body[:5] + _INT16.pack(code) + _EMPTY_TOPICS + b"\0"

    return rule
