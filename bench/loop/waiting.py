"""Waiting for a service that runs in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from caughtup.models.errors import CaughtupError

WAIT_SECONDS = 300.0
_LOOK_SECONDS = 0.05


async def until(is_done: Callable[[], object], what: str) -> None:
    """Wait until a condition holds. Raises CaughtupError ``timed_out`` with ``what``."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise CaughtupError("timed_out", f"after {WAIT_SECONDS:.0f} s still not: {what}")
        await asyncio.sleep(_LOOK_SECONDS)
