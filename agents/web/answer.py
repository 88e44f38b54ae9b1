"""Answers that are whole, or that nobody can take for whole, sent in pieces that are taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import msgspec
from aiohttp import hdrs, web

from caughtup.agents.web.door.connections import connection_of

log = logging.getLogger(__name__)

#: What is made before the first byte is sent. A million group-partitions make a gigabyte of text
#: (docs/measured.md), which can't be held a second time; this much is made in some 30 ms.
_HELD_BYTES = 4 << 20
#: What is written at once: a transport copies what its reader doesn't take.
_PIECE_BYTES = 1 << 16
#: A reader gets this long for all of it: the slowest scrape measured took 12 s.
_SECONDS = 300.0


def refused(status: int, why: str) -> web.Response:
    """Answer that a question can't be answered, and why, as JSON."""
    body = msgspec.json.encode({"error": why})
    return web.Response(status=status, body=body, content_type="application/json")


def count_asked(text: str, most: int) -> int | None:
    """Return the number from 1 to ``most`` that a question has; None for anything else."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    return number if 1 <= (number := int(text)) <= most else None


async def send_made(
    request: web.Request, headers: Mapping[str, str], chunks: list[bytes]
) -> web.StreamResponse:
    """Answer with what is made already, piece by piece as it is read; the list is used up."""
    size = sum(map(len, chunks))
    if size <= _PIECE_BYTES or request.method == hdrs.METH_HEAD:
        return web.Response(body=b"".join(chunks), headers=headers)
    response = web.StreamResponse(headers=headers)
    response.content_length = size
    return await _sent(request, response, _held_first(chunks), lambda _: None)


async def send_whole(
    request: web.Request,
    headers: Mapping[str, str],
    chunks: AsyncIterator[bytes],
    failed: Callable[[Exception], None],
) -> web.StreamResponse:
    """Answer with chunks as they are made.

    What fails within the first 4 MB is answered with 500, and most answers are not longer. What
    fails later ends the connection with a reset: chunked, the last chunk is missing; and without
    chunks, as in HTTP/1.0, an orderly end would be taken for the end of the text. ``failed`` is
    told of either. What HTTP itself has a status for, such as 503, is raised.
    """
    held: list[bytes] = []
    size = 0
    try:
        async for chunk in chunks:
            if chunk:  # an empty one would end the answer
                held.append(chunk)
            size += len(chunk)
            if size > _HELD_BYTES:
                break
        else:
            return await send_made(request, headers, held)
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this answer alone
        failed(error)
        return web.Response(status=500, text="this could not be made: the log says why\n")
    response = web.StreamResponse(headers=headers)
    return await _sent(request, response, _held_first(held, chunks), failed)


async def write_pieces(response: web.StreamResponse, data: bytes) -> None:
    """Write what may be long, a piece at a time, each once its reader has taken most before it."""
    for piece in _pieces(data):
        await response.write(piece)


async def _sent(
    request: web.Request,
    response: web.StreamResponse,
    chunks: AsyncIterator[bytes],
    failed: Callable[[Exception], None],
) -> web.StreamResponse:
    """Send an answer's chunks; it is cut off where they end early, or aren't read in time."""
    await response.prepare(request)
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in chunks:
                await write_pieces(response, chunk)
    except (ConnectionError, TimeoutError, web.HTTPException):
        log.debug("cut off %s: its client left or reads too slowly", request.path)
        _cut(request)
    except Exception as error:  # noqa: BLE001 - as above
        failed(error)
        _cut(request)
    except BaseException:  # the client has gone, or the server stops
        _cut(request)
        raise
    return response


async def _held_first(
    held: list[bytes], chunks: AsyncIterator[bytes] | None = None
) -> AsyncIterator[bytes]:
    """Yield what is held, without holding what was sent, and then what is made."""
    while held:
        yield held.pop(0)
    if chunks is not None:
        async for chunk in chunks:
            yield chunk


def _pieces(data: bytes) -> Iterator[bytes]:
    if len(data) <= _PIECE_BYTES:
        if data:
            yield data
        return
    view = memoryview(data)
    for at in range(0, len(data), _PIECE_BYTES):
        yield view[at : at + _PIECE_BYTES]  # type: ignore[misc]


def _cut(request: web.Request) -> None:
    connection = connection_of(request)
    if connection is not None:
        connection.cut()
