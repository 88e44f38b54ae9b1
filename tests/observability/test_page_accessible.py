"""The page by the rules of accessibility, as axe checks them; and what it loads that isn't ours."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import STATIC, serving
from tests.observability.page_states import large, partition, recent, stream
from tests.observability.test_page_addresses import STATE
from tests.support.npm import packed_file

AXE = (
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    "axe.min.js",
)
UPLOT = (
    "uplot",
    "1.6.32",
    "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
)


async def violations(page: Page, options: str = "{}") -> list[Any]:
    """Return what axe finds wrong on a page: the rule, and the elements that break it."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(packed_file(*AXE).decode() + "; 0")
    run = f"axe.run(document, {options}).then(found => JSON.stringify(found.violations))"
    found = json.loads(await page.evaluate(run, settled=True))
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]


#: By colour scheme: all rules, and those that colours alone decide.
RULES = {"light": "{}", "dark": "{ runOnly: ['color-contrast'] }"}


@pytest.mark.parametrize("scheme", RULES)
async def test_no_view_breaks_a_rule_of_accessibility(page: Page, scheme: str) -> None:
    told = {**STATE, "partitions": [partition(0), partition(1, "slow", why="slow", lag=3)]}
    told["applications"] = [*STATE["applications"], large(30, 300)]
    told["streams"] = [stream("rates", "failed", why="no space left")]
    async with serving(told, recent=recent()) as server:
        await page.scheme(scheme)
        for address, there in {
            server.url: "document.querySelectorAll('.chart canvas').length > 0",
            server.group(): "document.querySelectorAll('td.copy').length > 2",
            server.group("fleet"): "document.querySelector('[data-heat]')?.height > 10",
            f"{server.url}reassignments": f"{TEXT}.includes('moved-0')",
            f"{server.url}streams": f"{TEXT}.includes('rates')",
            f"{server.url}health": f"{TEXT}.includes('caughtup itself')",
        }.items():
            await page.open(address)
            await page.until(there)
            assert await violations(page, RULES[scheme]) == [], address
        await page.press("?")
        await page.until("document.getElementById('glossary').open")
        assert await violations(page, RULES[scheme]) == []
        assert page.errors == []


@pytest.mark.parametrize("path", ["dist/uPlot.esm.js", "dist/uPlot.min.css", "LICENSE"])
def test_the_plotting_library_is_what_its_authors_published(path: str) -> None:
    kept = STATIC / "vendor" / f"uplot-{UPLOT[1]}" / path.removeprefix("dist/")
    assert kept.read_bytes() == packed_file(*UPLOT, path)


def test_nothing_is_loaded_from_a_foreign_host() -> None:
    for file in STATIC.rglob("*"):
        if file.suffix in {".js", ".css", ".html"} and "vendor" not in file.parts:
            loaded = re.findall(
                r"(?:src|href|from|import|url)\W{1,3}(?:https?:)?//[\w.]+", file.read_text()
            )
            assert loaded == [], file
