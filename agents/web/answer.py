"""HTTP answers that are complete or visibly cut off, sent in pieces as the client reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import msgspec
from aiohttp import hdrs, web

from caughtup.agents.web.door.connections import connection_of

log = logging.getLogger(__name__)

#: Made before the first byte is sent, in some 30 ms. A million group-partitions make a gigabyte of
#: text (docs/measured.md), too much to hold a second time.
_HELD_BYTES = 4 << 20
#: Written at once: a transport copies what its client hasn't read yet.
_PIECE_BYTES = 1 << 16
#: The longest time for a whole answer: the slowest scrape measured took 12 s.
_SECONDS = 300.0


def error_response(status: int, why: str) -> web.Response:
    """Return a JSON answer with the reason of an error."""
    body = msgspec.json.encode({"error": why})
    return web.Response(status=status, body=body, content_type="application/json")


def parse_count(text: str, most: int) -> int | None:
    """Return the number from 1 to ``most`` in a query parameter, None for anything else."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    return number if 1 <= (number := int(text)) <= most else None


async def send_chunks(
    request: web.Request, headers: Mapping[str, str], chunks: list[bytes]
) -> web.StreamResponse:
    """Send chunks that are made already, piece by piece; empties the list."""
    size = sum(map(len, chunks))
    if size <= _PIECE_BYTES or request.method == hdrs.METH_HEAD:
        return web.Response(body=b"".join(chunks), headers=headers)
    response = web.StreamResponse(headers=headers)
    response.content_length = size
    return await _send(request, response, _held_then_made(chunks), lambda _: None)


async def send_stream(
    request: web.Request,
    headers: Mapping[str, str],
    chunks: AsyncIterator[bytes],
    failed: Callable[[Exception], None],
) -> web.StreamResponse:
    """Send chunks as they are made.

    An error within the first 4 MB, which is more than most answers have, is answered with 500. A
    later one resets the connection: in HTTP/1.0, without chunks, an orderly end would look like the
    end of the text. ``failed`` is called for either. Raises the HTTPException of ``chunks``.
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
            return await send_chunks(request, headers, held)
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - any error costs this answer alone
        failed(error)
        return web.Response(
            status=500, text="the service could not compute this answer: its log says why\n"
        )
    response = web.StreamResponse(headers=headers)
    return await _send(request, response, _held_then_made(held, chunks), failed)


async def write_pieces(response: web.StreamResponse, data: bytes) -> None:
    """Write data a piece at a time, each once the client has read most of what was written."""
    for piece in _pieces(data):
        await response.write(piece)


async def _send(
    request: web.Request,
    response: web.StreamResponse,
    chunks: AsyncIterator[bytes],
    failed: Callable[[Exception], None],
) -> web.StreamResponse:
    """Send an answer's chunks; reset the connection if one fails or isn't read in time."""
    await response.prepare(request)
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in chunks:
                await write_pieces(response, chunk)
    except (ConnectionError, TimeoutError, web.HTTPException):
        log.debug("cut off %s: its client left or reads too slowly", request.path)
        _reset(request)
    except Exception as error:  # noqa: BLE001 - as above
        failed(error)
        _reset(request)
    except BaseException:  # the client has gone, or the server stops
        _reset(request)
        raise
    return response


async def _held_then_made(
    held: list[bytes], chunks: AsyncIterator[bytes] | None = None
) -> AsyncIterator[bytes]:
    """Yield the held chunks, dropping each once it is sent, then the others as they are made."""
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


def _reset(request: web.Request) -> None:
    connection = connection_of(request)
    if connection is not None:
        connection.cut()
