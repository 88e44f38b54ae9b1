"""Five questions that somebody asks who knows Kafka and not this page: how many clicks from ``/``?"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.observability.browser import TEXT, Page
from tests.support.pictures.played_cluster import Cluster
from tests.support.pictures.scene_of_groups import play_unwell
from tests.support.pictures.scene_of_reassignments import observe_moves
from tests.support.pictures.scenes import small
from tests.support.pictures.shots import served

ORDERS = "[...document.querySelectorAll('.groups a')].find((a) => a.innerText === 'orders')"
CHARTED = "(all => all.length > 2 && all.every(one => one.querySelector('canvas')))([...document.querySelectorAll('.chart')])"
COST = "[...document.querySelectorAll('button')].find((b) => b.innerText === 'What would it cost?')"

#: What is clicked on, one after the other, and what then stands there.
QUESTIONS = {
    "what would adding an instance cost?": (
        [ORDERS, COST],
        [
            "6 copies and 4 probing rebalances (up to 40 min) by caughtup",
            "movements under way included",
        ],
    ),
    "why is orders-c idle?": (
        [ORDERS],
        [
            "Without an active task orders-c 2 warm-ups being built (0_0, 0_2)",
            "Why 0_2 is not here yet, as decided 4 min ago: the active belongs",
        ],
    ),
    "is this move stuck?": ([], ["◆ stalled disk full", "ends in never"]),
    "whose lag is worst and since when?": (
        [],
        ["Recent lag search-indexer ■ stopped 1,304,292", "for 21 min: clicks-4"],
    ),
    "who caused the last rebalance?": (
        [],
        ["What just happened", "orders generation 17 → 18: orders-c joined"],
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    def beside(one: Cluster) -> None:
        play_unwell(one)
        one.players.append(lambda now_ms: observe_moves(one, now_ms))

    return small(beside)


@pytest.fixture
async def address(cluster: Cluster) -> AsyncIterator[str]:
    async with served(cluster) as url:
        yield url


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_is_answered_within_two_clicks(
    page: Page, address: str, question: str
) -> None:
    clicks, answer = QUESTIONS[question]
    await page.open(address, width=1400)
    for element in clicks:
        # Charts come a moment later, and move what is below them: nobody clicks before that.
        await page.until(f"{CHARTED} && {element} !== undefined")
        await page.click(element)
    text = f"{TEXT}.replace(/\\s+/g, ' ')"
    for said in answer:
        await page.until(f"{text}.includes({json.dumps(said)})")
    assert page.errors == []
    print(f"{question} {len(clicks)} clicks")
