"""A network between the service and the brokers that can stop forwarding: half-open connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress

from caughtup.demo.processes.children import ClosedOnExit

_CHUNK = 1 << 16
#: The API key of a request to write, which comes after its length.
_PRODUCE = b"\0\0"
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


class Proxy(ClosedOnExit):
    """Forwards TCP from ports of 127.0.0.1 to others, unless told to hold what comes.

    What is held isn't lost, as in a network that drops packets and then goes on; connections stay
    open on both sides, and new ones are taken.
    """

    def __init__(self, routes: Mapping[int, int]) -> None:
        self._routes = dict(routes)
        self._loop = asyncio.new_event_loop()
        self._flows: dict[int, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._loses = False
        self._needle: bytes | None = None
        #: Set while a request to write is held back.
        self.caught = threading.Event()
        self._let_go = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def hold(self, *ports: int) -> None:
        """Forward nothing more from these ports, all without any."""
        self._set(ports, flows=False)

    def release(self, *ports: int) -> None:
        """Forward again, what was held first."""
        self._set(ports, flows=True)

    @contextmanager
    def holding(self, *ports: int) -> Iterator[None]:
        """Forward nothing from these ports within the context, all without any."""
        self.hold(*ports)
        try:
            yield
        finally:
            self.release(*ports)

    def lose_answer(self) -> None:
        """Close a connection in the place of forwarding what comes next from behind it."""
        self._loses = True

    def catch_produce(self, topic: str) -> None:
        """Hold back the next request that writes to a topic, and what comes after it there."""
        self._let_go.clear()
        self._needle = topic.encode()

    def let_go(self) -> None:
        """Forward the request that was caught, if the one who sent it is still there or not."""
        self.caught.clear()
        self._loop.call_soon_threadsafe(self._let_go.set)

    def close(self) -> None:
        """Stop, and drop every connection; do nothing the second time."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _set(self, ports: tuple[int, ...], *, flows: bool) -> None:
        for port in ports or tuple(self._flows):
            flow = self._flows[port]
            self._loop.call_soon_threadsafe(flow.set if flows else flow.clear)

    async def _listen(self) -> None:
        for port in self._routes:
            self._flows[port] = asyncio.Event()
            self._flows[port].set()
            server = await asyncio.start_server(self._accepted(port), "127.0.0.1", port)
            self._servers.append(server)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports are closed in the next turn

    def _accepted(self, port: int) -> Connected:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            flow = self._flows[port]
            try:
                await flow.wait()
            except asyncio.CancelledError:
                writer.close()
                raise
            try:
                inner = await asyncio.open_connection("127.0.0.1", self._routes[port])
            except OSError:
                writer.close()
                return
            pumps = [
                asyncio.ensure_future(_pump(flow, reader, inner[1], self._catch)),
                asyncio.ensure_future(_pump(flow, inner[0], writer, self._is_lost)),
            ]
            self._tasks.update(pumps)
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                await flow.wait()
            finally:
                for pump in pumps:
                    pump.cancel()
                    self._tasks.discard(pump)
                for end in (writer, inner[1]):
                    end.close()

        return connected

    async def _catch(self, data: bytes) -> bool:
        """Hold back what is to be caught; nothing of it is lost."""
        if self._needle is not None and data[4:6] == _PRODUCE and self._needle in data:
            self._needle = None
            self.caught.set()
            await self._let_go.wait()
        return False

    async def _is_lost(self, _: bytes) -> bool:
        """Return whether the answer that has just come is to be lost."""
        loses, self._loses = self._loses, False
        return loses


async def _pump(
    flow: asyncio.Event,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    is_lost: Callable[[bytes], Awaitable[bool]],
) -> None:
    """Forward one direction until it ends, or until something of it is lost."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            await flow.wait()
            if await is_lost(data):
                return
            writer.write(data)
            await writer.drain()
