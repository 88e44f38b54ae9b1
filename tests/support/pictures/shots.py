"""Screenshots of the page in a real Chromium, in every width and both colour schemes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from caughtup.agents.settings import Settings
from caughtup.agents.web.server import WebServer
from tests.observability.browser import Page, new_page
from tests.support.pictures.palette import drawn, written
from tests.support.pictures.played_cluster import NOW_MS, Cluster
from tests.support.pictures.scenes import Scene

WIDTHS = (1400, 800, 400)
SCHEMES = ("light", "dark")
#: The greatest height of a picture, in pixels, by its width.
_HIGHEST = {1400: 1_300, 800: 1_500, 400: 1_700}
_HEIGHT = 900
_LINKS = {
    "grafana_url": "https://grafana.example.com/d/caughtup",
    "docs_url": "https://docs.example.com/caughtup",
}
#: Stops the browser's clock, so that no countdown changes between two pictures.
_STILL = "performance.now = () => 5_000"
_THERE = """
(() => {
  const charts = [...document.querySelectorAll(".chart")];
  return document.querySelector(".link.ok")?.innerText === "live"
    && document.querySelector("main .panel") !== null
    && (%s ? charts.length > 0 : true) && charts.every((chart) => chart.querySelector("canvas"));
})()
"""
_FRAMES = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => "
    "setTimeout(done, 60))))"
)


@asynccontextmanager
async def served(cluster: Cluster, history: Path | None = None) -> AsyncIterator[str]:
    """Serve a cluster as the service does, at its simulated time; yield the address.

    ``history``: the place of its tables, if it has any.
    """
    cluster.now_ms = NOW_MS
    uri = None if history is None else str(history)
    settings = Settings(web_port=0, history_uri=uri, **_LINKS)
    web = WebServer(settings, cluster.state, cluster.health, clock=lambda: NOW_MS)
    await web.start()
    try:
        yield f"http://127.0.0.1:{web.port}"
    finally:
        await web.stop()


async def take(
    browser: str, name: str, scene: Scene, cluster: Cluster, keep: Callable[[str, bytes], None]
) -> None:
    """Take every picture of a simulated scene, and pass each to ``keep`` with its file's name."""
    history = None
    if scene.history is not None:
        history = Path(tempfile.mkdtemp())
        scene.history(history)
    try:
        await _take(browser, name, scene, cluster, history, keep)
    finally:
        if history is not None:
            shutil.rmtree(history)


async def _take(
    browser: str,
    name: str,
    scene: Scene,
    cluster: Cluster,
    history: Path | None,
    keep: Callable[[str, bytes], None],
) -> None:
    async with served(cluster, history) as url, new_page(browser) as page:
        for domain in ("Page", "Runtime", "Log"):
            await page.send(f"{domain}.enable")
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=_STILL)
        await page.send("Emulation.setTimezoneOverride", timezoneId="UTC")
        await page.send("Emulation.setScrollbarsHidden", hidden=True)
        for scheme in SCHEMES:
            await page.scheme(scheme)
            for width in WIDTHS:
                shot = await _shot(page, url + scene.address, width)
                async with new_page(browser) as blank:
                    keep(f"{name}-{width}-{scheme}.png", written(await drawn(blank, shot)))
        assert page.errors == [], page.errors


async def _shot(page: Page, url: str, width: int) -> bytes:
    await page.open(url, width=width, height=_HEIGHT)
    path = url.partition("//")[2].partition("/")[2]
    charted = path == "" or path.startswith("groups/")
    await page.until(_THERE % ("true" if charted else "false"))
    await page.evaluate(_FRAMES, settled=True)
    height = await page.evaluate("Math.ceil(document.body.getBoundingClientRect().height)")
    await page.resize(width, min(int(height), _HIGHEST[width]))
    await page.evaluate(_FRAMES, settled=True)
    return await page.screenshot()
