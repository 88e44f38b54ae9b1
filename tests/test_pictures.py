"""No picture is older than what it shows."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path

import pytest

from tests.support.pictures import made_from
from tests.support.pictures.made_from import MANIFEST, PICTURES, ROOT, SOURCES
from tests.support.pictures.palette import Drawn, written
from tests.support.pictures.shots import SCHEMES, WIDTHS
from tests.support.pictures.terminal import TERMINALS

MADE = json.loads(MANIFEST.read_text())
PAGES = ("README.md", *sorted(str(one.relative_to(ROOT)) for one in (ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize("name", SOURCES)
def test_pictures_were_made_from_the_sources_as_they_are(name: str) -> None:
    assert MADE["sources"][name] == made_from.digest(name), f"{name} changed: run make pictures"


def test_every_picture_is_among_those_that_were_made() -> None:
    there = {file.name for file in PICTURES.iterdir()} - {MANIFEST.name}
    assert there == MADE["pictures"].keys()


def test_a_change_of_the_page_is_noticed_and_one_beside_it_is_not(tmp_path: Path) -> None:
    page = tmp_path / "agents" / "web" / "static" / "page.js"
    page.parent.mkdir(parents=True)
    page.write_text("one")
    before = made_from.digest("page", tmp_path)
    (tmp_path / "agents" / "web" / "server.py").write_text("a header more")
    assert made_from.digest("page", tmp_path) == before
    page.write_text("another")
    assert made_from.digest("page", tmp_path) != before


def test_a_comment_makes_no_picture_old_and_a_word_on_the_page_does(tmp_path: Path) -> None:
    view = tmp_path / "agents" / "web" / "page" / "head.py"
    view.parent.mkdir(parents=True)
    view.write_text('"""Draw."""\nWORD = "lag"\n')
    before = made_from.digest("page", tmp_path)
    view.write_text('"""Draw the head."""\n\n# As Kafka calls it.\nWORD = "lag"\n')
    assert made_from.digest("page", tmp_path) == before
    view.write_text('"""Draw."""\nWORD = "delay"\n')
    assert made_from.digest("page", tmp_path) != before


@pytest.mark.thorough
@pytest.mark.parametrize("name", TERMINALS)
def test_a_picture_of_the_terminal_is_what_the_commands_print_now(name: str) -> None:
    assert (PICTURES / name).read_text() == TERMINALS[name](), "run make pictures"


def test_a_palette_s_png_has_each_pixel() -> None:
    pixels = bytes(range(6))
    png = written(Drawn(3, 2, [[n, n, n] for n in range(6)], pixels))
    width, height, depth, kind = struct.unpack_from(">IIBB", png, 16)
    assert (width, height, depth, kind) == (3, 2, 8, 3)
    at = png.index(b"IDAT")
    (size,) = struct.unpack_from(">I", png, at - 4)
    assert zlib.decompress(png[at + 4 : at + 4 + size]) == b"\0\0\1\2\0\3\4\5"
    assert png[at + 4 + size :][:4] == struct.pack(">I", zlib.crc32(png[at : at + 4 + size]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_picture_has_the_page_s_colours(scheme: str, width: int) -> None:
    """What is slow is yellow and what is stopped is red, also where few pixels are."""
    style = (ROOT / "agents/web/static/style/page.css").read_text()
    light, dark = (
        dict(re.findall(r"--(\w+): #(\w{6})", part)) for part in style.split("@media")[:2]
    )
    wanted = light if scheme == "light" else dark
    palette = _palette(PICTURES / f"groups-{width}-{scheme}.png")
    for name in ("ok", "bad", "unsure", "bar"):
        colour = bytes.fromhex(wanted[name])
        off = min(max(abs(a - b) for a, b in zip(colour, one, strict=True)) for one in palette)
        assert off <= 8, f"{name} is missing, {off} off"


def _palette(picture: Path) -> list[bytes]:
    png = picture.read_bytes()
    at = png.index(b"PLTE")
    (size,) = struct.unpack_from(">I", png, at - 4)
    return [png[at + 4 + place :][:3] for place in range(0, size, 3)]


@pytest.mark.parametrize("page", PAGES)
def test_the_pictures_that_a_document_shows_are_there(page: str) -> None:
    document = ROOT / page
    shown = re.findall(r"(?:\]\(|src(?:set)?=\")([^)\"\s]+\.(?:png|svg))", document.read_text())
    missing = [
        name for name in shown if "://" not in name and not (document.parent / name).exists()
    ]
    assert missing == []
