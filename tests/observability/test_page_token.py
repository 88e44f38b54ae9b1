"""The page behind a token, in a real browser: it asks once, then everything is loaded with it."""

from __future__ import annotations

from pathlib import Path

from tests.observability.browser import TEXT, Page
from tests.support.observability.site import Site
from tests.support.states import everything

TOKEN = "s3cret"


async def test_whoever_types_the_token_sees_the_page_live(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    async with Site(everything(), web_token_file=path) as site:
        await page.open(site.url("/"))
        await page.until(f"{TEXT}.includes('401') || document.readyState === 'complete'")
        assert "cluster-1" not in await page.evaluate(TEXT)
        page.errors.clear()
        # As a password manager does, in place of the dialog that has nobody to type into it.
        await page.send("Page.navigate", url=site.url("/").replace("//", f"//any:{TOKEN}@"))
        await page.until(f"{TEXT}.includes('cluster-1')", seconds=20)
        await page.until("document.querySelector('.link.ok') !== null", seconds=20)
        assert page.errors == []
