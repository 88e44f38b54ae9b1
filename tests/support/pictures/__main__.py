"""``make pictures``: write docs/pictures/; ``python -m tests.support.pictures small`` some of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from tests.observability.browser import chromium
from tests.support.pictures import made_from
from tests.support.pictures.scenes import SCENES
from tests.support.pictures.shots import take
from tests.support.pictures.terminal import TERMINALS


async def _pages(names: list[str], keep: Callable[[str, bytes], None]) -> None:
    with chromium() as browser:
        for name in names:
            scene = SCENES[name]
            await take(browser, name, scene, scene.play(), keep)


def main(wanted: list[str]) -> None:
    """Make the named pictures, or all of them and the list of their sources' digests."""
    made: set[str] = set()
    made_from.PICTURES.mkdir(exist_ok=True)

    def keep(name: str, picture: bytes) -> None:
        (made_from.PICTURES / name).write_bytes(picture)
        made.add(name)
        print(f"{name}: {len(picture):,} bytes", flush=True)

    for name, make in TERMINALS.items():
        if not wanted or name in wanted:
            keep(name, make().encode())
    if names := [name for name in SCENES if not wanted or name in wanted]:
        asyncio.run(_pages(names, keep))
    if wanted:
        return
    for file in made_from.PICTURES.iterdir():
        if file.name not in made and file != made_from.MANIFEST:
            file.unlink()
    made_from.write(made)


if __name__ == "__main__":
    main(sys.argv[1:])
