"""A real headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.service import wait_for

DEADLINE_SECONDS = 60.0
#: What can be read on the page, also before there is one.
TEXT = "(document.body?.innerText ?? '')"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    # It would start a process ahead for each page, which none of these tests gets to use.
    "--disable-features=SpareRendererForSitePerProcess",
    # Their pages are of one site: one process for all of them keeps what it has compiled.
    "--process-per-site",
    "--renderer-process-limit=1",
    "--in-process-gpu",
    "--no-first-run",
    "--remote-debugging-port=0",
)


class BrowserMissingError(RuntimeError):
    """There is no Chromium on PATH."""


class Page:
    """One page. ``errors``: what its scripts threw or logged as an error, oldest first."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.errors: list[str] = []

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a DevTools command and give its result."""
        wanted = next(self._ids)
        await self._socket.send_json({"id": wanted, "method": method, "params": parameters})
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                message = json.loads((await self._socket.receive()).data)
                if message.get("id") == wanted:
                    if "error" in message:
                        raise RuntimeError(f"{method}: {message['error']['message']}")
                    return dict(message["result"])
                self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        said = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.errors.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")

    async def open(self, url: str, *, width: int = 1280, height: int = 900) -> None:
        """Open an address in a window of so many CSS pixels."""
        for domain in ("Page", "Runtime", "Log", "Performance"):
            await self.send(f"{domain}.enable")
        await self.resize(width, height)
        await self.send("Page.navigate", url=url)

    async def resize(self, width: int, height: int) -> None:
        """Resize the window, in CSS pixels."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def scheme(self, scheme: str) -> None:
        """Prefer the ``light`` or the ``dark`` scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.send("Emulation.setEmulatedMedia", features=[feature])

    async def evaluate(self, expression: str, *, settled: bool = False) -> Any:
        """Evaluate an expression in the page and give its value (JSON), or its promise's."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=settled
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = DEADLINE_SECONDS) -> Any:
        """Ask until an expression is true, and give its value.

        Raises TimeoutError with the page's text and errors after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while not (value := await self.evaluate(expression)):
            if time.monotonic() > deadline:
                text = await self.evaluate("document.body.innerText")
                raise TimeoutError(f"never true: {expression}\n{self.errors}\n{text}")
            await asyncio.sleep(0.05)
        return value

    async def press(self, key: str) -> None:
        """Press and release a key, named as in KeyboardEvent.key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40, "End": 35}
        code = codes.get(key) or ord(key.upper())
        # A key that types something does so; of the others Enter alone means something by its text.
        text = {"text": "\r"} if key == "Enter" else {} if key in codes else {"text": key}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            said = text if kind != "keyUp" else {}
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **said
            )

    async def click(self, element: str) -> None:
        """Click in the middle of the element that an expression gives."""
        box = await self.evaluate(
            f"(e => {{ e.scrollIntoView({{ block: 'center' }}); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + b.height / 2]; }})({element})"
        )
        await self.click_at(*box)

    async def click_at(self, x: float, y: float) -> None:
        """Click, in CSS pixels from the window's top left."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def cpu_seconds(self) -> float:
        """Return what the page's process has used of the processor."""
        metrics = (await self.send("Performance.getMetrics"))["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "ProcessTime")

    async def point_at(self, x: float, y: float) -> None:
        """Move the pointer, in CSS pixels from the window's top left."""
        await self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def screenshot(self) -> bytes:
        """Return a PNG of the window."""
        answer = await self.send("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])


@contextlib.contextmanager
def chromium() -> Iterator[str]:
    """Start a Chromium with a profile of its own; give the address that it is driven at."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise BrowserMissingError("no chromium on PATH: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield wait_for("chromium is there", lambda: _address(Path(profile)), DEADLINE_SECONDS)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(profile: Path) -> str | None:
    """Return what Chromium has written about itself so far."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        port, path = (profile / "DevToolsActivePort").read_text().splitlines()
        return f"http://127.0.0.1:{port}{path}"
    return None


@contextlib.asynccontextmanager
async def new_page(browser: str) -> AsyncIterator[Page]:
    """Open a page without cookies, as those before it leave none; a page of ours keeps nothing else.

    A context of its own for each page would take a third of what its test costs.
    """
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(browser, max_msg_size=0) as socket,
    ):
        driver = Page(socket)
        target = await driver.send("Target.createTarget", url="about:blank")
        server = browser.partition("/devtools/")[0]
        address = f"{server}/devtools/page/{target['targetId']}"
        async with session.ws_connect(address, max_msg_size=0) as of_page:
            yield Page(of_page)
        await driver.send("Target.closeTarget", targetId=target["targetId"])
        await driver.send("Storage.clearCookies")
