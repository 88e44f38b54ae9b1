"""One browser for all tests that ask for a page; each has a page of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.observability.browser import Page, chromium, new_page


@pytest.fixture(scope="session")
def browser() -> Iterator[str]:
    """The address of a Chromium that stays for the session."""
    with chromium() as address:
        yield address


@pytest.fixture
async def page(browser: str) -> AsyncIterator[Page]:
    async with new_page(browser) as opened:
        yield opened
