"""Answers that are whole, or that nobody can take for whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping

import msgspec
from aiohttp import web

from caughtup.agents.web.limits import connection_of

log = logging.getLogger(__name__)

#: What is made before the first byte is sent. A million group-partitions make a gigabyte of text
#: (docs/measured.md), which can't be held a second time; this much is made in some 30 ms.
_HELD_BYTES = 4 << 20
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
    told of either.
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
            return web.Response(body=b"".join(held), headers=headers)
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this answer alone
        failed(error)
        return web.Response(status=500, text="this could not be made: the log says why\n")
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    try:
        async with asyncio.timeout(_SECONDS):
            while held:
                await response.write(held.pop(0))
            async for chunk in chunks:
                if chunk:
                    await response.write(chunk)
    except (ConnectionError, TimeoutError):
        log.debug("cut off %s: its client left or reads too slowly", request.path)
        _cut(request)
    except Exception as error:  # noqa: BLE001 - as above
        failed(error)
        _cut(request)
    except BaseException:  # the server stops
        _cut(request)
        raise
    return response


def _cut(request: web.Request) -> None:
    connection = connection_of(request)
    if connection is not None:
        connection.cut()
