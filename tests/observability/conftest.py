"""A browser for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.observability.browser import Page, chromium


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with chromium() as started:
        yield started
