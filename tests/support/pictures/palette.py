"""Screenshots as PNGs with a palette: a third of the bytes, without a visible difference.

The browser that took a screenshot reads its pixels and counts their colours; the PNG is written
here.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import NamedTuple

from tests.observability.browser import Page

#: Counts colours. Of more than 256, the palette gets one after another the colour whose absence
#: costs most: its squared distance from the nearest chosen colour, times its pixels. So rare,
#: distinct colours stay, and shades of grey become their neighbours.
_COUNTED = """
(async (encoded) => {
  const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const pixels = new Uint32Array(data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const off = (one, other) => one.reduce((sum, each, at) => sum + (each - other[at]) ** 2, 0);
  const colours = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .map(([pixel, count]) => ({ colour: parts(pixel), count, off: Infinity }));
  const palette = [];
  let next = colours[0];
  while (palette.length < 256 && next.off > 0) {
    palette.push(next.colour);
    for (const each of colours) each.off = Math.min(each.off, off(each.colour, palette.at(-1)));
    next = colours.reduce((most, each) => (each.off * each.count > most.off * most.count ? each : most));
  }
  const places = new Map();
  const placeOf = (pixel) => {
    const wanted = parts(pixel);
    let best = 0;
    let least = Infinity;
    palette.forEach((colour, place) => {
      const away = off(colour, wanted);
      if (away < least) [least, best] = [away, place];
    });
    return best;
  };
  for (const pixel of counts.keys()) places.set(pixel, placeOf(pixel));
  const drawn = Uint8Array.from(pixels, (pixel) => places.get(pixel));
  let text = "";
  for (let at = 0; at < drawn.length; at += 32768) text += String.fromCharCode(...drawn.subarray(at, at + 32768));
  return { width, height, palette, drawn: btoa(text) };
})(%s)
"""


class Drawn(NamedTuple):
    """A picture: its size in pixels, up to 256 colours, and the colour of each pixel."""

    width: int
    height: int
    palette: list[list[int]]
    pixels: bytes


async def drawn(page: Page, png: bytes) -> Drawn:
    """Read a screenshot's pixels in a browser page, and reduce its colours."""
    encoded = json.dumps(base64.b64encode(png).decode())
    found = await page.evaluate(_COUNTED % encoded, settled=True)
    pixels = base64.b64decode(found["drawn"])
    return Drawn(found["width"], found["height"], found["palette"], pixels)


def written(picture: Drawn) -> bytes:
    """Write a picture as a PNG: the same bytes for the same pixels."""
    width = picture.width
    rows = (picture.pixels[at : at + width] for at in range(0, len(picture.pixels), width))
    lines = b"".join(b"\0" + row for row in rows)  # each without a filter
    colours = b"".join(bytes(colour) for colour in picture.palette)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, picture.height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", colours),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
