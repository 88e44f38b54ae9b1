"""A network between clients and brokers that rewrites what brokers answer, by request.

Metadata is rewritten so that clients come back: every broker's address becomes that of its port here.
rewriting_rules.py has what is rewritten.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.demo.processes.children import ClosedOnExit, free_ports
from caughtup.models.wire.reader import Reader

_LENGTH, _HEADER = struct.Struct(">i"), struct.Struct(">hhi")
_INT32 = struct.Struct(">i")
_HOST = b"127.0.0.1"
_ADDRESSED = (Key.METADATA, Key.FIND_COORDINATOR, Key.DESCRIBE_CLUSTER)
#: The first version of ApiVersions with compact arrays.
_FLEXIBLE_API_VERSIONS = 3


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


class OfferedApi(NamedTuple):
    """A request that a broker offers, with its least and greatest version."""

    key: int
    least: int
    greatest: int


@dataclass
class _Connection:
    """What was asked on a connection and has no answer yet, by number, and what is offered there.

    ``offered``: by API key; None until it is told.
    """

    asked: dict[int, tuple[int, int, bytes]] = field(default_factory=dict)
    offered: dict[int, OfferedApi] | None = None


class Rewriting(ClosedOnExit):
    """Stands before each of some brokers, which all are on this machine.

    ``rules`` are applied in their order to each answer, and may be replaced at any time.
    ``one_address``: clients see all brokers at the first port, where connections go to each in turn.
    As brokers do, it closes a connection on a request that is not offered there.
    """

    def __init__(self, servers: str, *rules: Rule, one_address: bool = False) -> None:
        self.rules: Sequence[Rule] = rules
        #: The number of requests, by key; and of those that were not offered, by key and version.
        self.requests = Counter[int]()
        self.not_offered = Counter[tuple[int, int]]()
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
            connection = _Connection()
            pumps = [
                asyncio.ensure_future(self._requests(reader, inner[1], connection)),
                asyncio.ensure_future(self._answers(at, inner[0], writer, connection)),
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
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                key, version, number = _HEADER.unpack_from(frame)
                self.requests[key] += 1
                offered = connection.offered
                if offered is not None and key != Key.API_VERSIONS:
                    _, least, greatest = offered.get(key, OfferedApi(key, 1, 0))
                    if not least <= version <= greatest:
                        self.not_offered[key, version] += 1
                        return
                connection.asked[number] = key, version, frame[_HEADER.size :]
                writer.write(_LENGTH.pack(len(frame)) + frame)
                await writer.drain()

    async def _answers(
        self,
        node: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: _Connection,
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                (number,) = _INT32.unpack_from(frame)
                key, version, request = connection.asked.pop(number)
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
                if key == Key.API_VERSIONS:
                    connection.offered = {one.key: one for one in read_offered(body, version)}
                writer.write(_LENGTH.pack(len(head) + len(body)) + head + body)
                await writer.drain()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


def read_offered(body: bytes, version: int) -> list[OfferedApi]:
    """Read what an answer to ApiVersions offers, without its header."""
    reader = Reader(body, flexible=version >= _FLEXIBLE_API_VERSIONS)
    reader.int16()
    found = []
    for _ in range(reader.array_length(6)):
        found.append(OfferedApi(reader.int16(), reader.int16(), reader.int16()))
        reader.tagged_fields()
    return found
