"""Long names on the page: shortened in a real browser, and still told apart."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.observability.browser import Page
from tests.observability.page_server import serving
from tests.observability.page_states import state

_SHORTENED = """
import('{url}shell/names.js').then(({{ shortened }}) => {{
  const {{ of, common }} = shortened({names}, {most});
  return {{ short: {names}.map(of), common }};
}})
"""


async def shortened(page: Page, url: str, names: list[str], most: int) -> Any:
    expression = _SHORTENED.format(url=url, names=json.dumps(names), most=most)
    return await page.evaluate(expression, settled=True)


async def test_names_lose_what_all_share_and_then_their_middle(page: Page) -> None:
    async with serving(state()) as server:
        await page.open(server.url)
        for names, most, short, common in (
            (["orders-a", "orders-b"], 11, ["orders-a", "orders-b"], ""),
            (
                ["shop-orders-7d9f-x1-thread", "shop-orders-7d9f-y2-thread"],
                11,
                ["x1", "y2"],
                "shop-orders-7d9f-…-thread",
            ),
            (["a" * 20], 11, ["aaaaa…aaaaa"], ""),
            (
                [f"{'x' * 12}{n}{'y' * 12}" for n in (1, 2)],
                11,
                ["…1yyyy…yyyy", "…2yyyy…yyyy"],
                "",
            ),
        ):
            told = await shortened(page, server.url, list(names), most)
            assert (told["short"], told["common"]) == (short, common)


async def test_however_names_are_no_two_become_the_same_and_none_is_too_long(page: Page) -> None:
    async with serving(state()) as server:
        await page.open(server.url)
        for seed in range(60):
            draw = random.Random(seed)
            letters = draw.choice(["ab-", "a", "x-.", "é𝒳-ا"])
            sizes = range(draw.randrange(1, 12))
            middle = {"".join(draw.choices(letters, k=draw.randrange(1, 30))) for _ in sizes}
            start, end = ("".join(draw.choices(letters, k=draw.randrange(20))) for _ in range(2))
            names = sorted({f"{start}{each}{end}" for each in middle}) or ["only"]
            told = await shortened(page, server.url, names, 17)
            assert len(set(told["short"])) == len(names), (seed, names, told)
            assert max(len(each) for each in told["short"]) <= 18, (seed, names, told)
