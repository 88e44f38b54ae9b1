"""Connect groups on the page, in a real browser: what a service tells of a group that is played."""

from __future__ import annotations

import json
import re
from typing import Any

from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.web.page.parts import whole_steps
from caughtup.models.connect.work import written
from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import now_ms, state
from tests.support.connect.clusters import WorkerCluster, settled
from tests.support.connect.playing import Group

MARKUP = "<img src=x onerror=\"document.title='owned'\">"


def told(cluster: WorkerCluster) -> list[dict[str, Any]]:
    """Return what the service tells of its Connect groups."""
    steps = whole_steps(cluster.state, Health(ready=True), cluster.group.now_ms)
    return [json.loads(bytes(raw)) for raw in done_at_once(steps).connect]


def shifted(groups: list[dict[str, Any]], by_ms: int) -> Any:
    """Move all times of a state, so that a group that was played in the past is of now."""

    def move(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: move(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [move(one, name) for one in value]
        return value + by_ms if name.endswith("_ms") and name != "delay_ms" else value

    return move(groups)


async def test_contradictions_come_first_the_delay_counts_down_and_cells_say_who_has_what(
    page: Page,
) -> None:
    cluster = settled()
    cluster.configure(MARKUP, 1)
    cluster.round()
    cluster.run()
    names = written(cluster.group.owned["W2"])
    for name in names:
        cluster.status(name, "UNASSIGNED", "W2")
    cluster.group.leave("W2")
    cluster.round()
    cluster.group.join("W2")
    cluster.round(100_000)
    failed = written(cluster.group.owned["W1"])[-1]
    cluster.status(failed, "FAILED", "W1", trace="java.lang.IllegalStateException: x")
    groups = shifted(told(cluster), now_ms() - cluster.group.now_ms)
    async with serving(state(connect=groups)) as server:
        await page.open(f"{server.url}connect")
        await page.until(f"{TEXT}.includes('Contradictions')")
        text = await page.evaluate(TEXT)
        assert text.index("Contradictions") < text.index("Next rebalance")
        assert f"failed {failed} w1:8083" in " ".join(text.split())
        assert "failed: java" not in text  # the word stands there once
        assert "java.lang.IllegalStateException" in text
        assert (
            "C is the connector, and a number is its task running failed no worker is assigned it"
            in " ".join(text.split())
        )
        assert "work waits for a worker that left" in text
        assert re.search(r"w2:8083 left 1\d\d s ago", " ".join(text.split()))
        assert "ago and came back in time" in " ".join(text.split())
        assert "rebalance in 3 min" in " ".join(text.split())
        rows = "[...document.querySelectorAll('.workers tbody tr')].map(r => r.cells[0].innerText)"
        shown = await page.evaluate(rows)
        assert shown == ["w1:8083leader", "w2:8083", "w3:8083", "no worker"]
        cells = "document.querySelectorAll('.workers td .kind').length"
        assert await page.evaluate(cells) == len(groups[0]["items"])
        label = "document.querySelector('.workers .kind.cold').getAttribute('aria-label')"
        assert (await page.evaluate(label)).startswith(f"{failed}: FAILED on w1:8083")
        assert MARKUP in text
        await page.resize(400, 900)
        table = "document.querySelector('.connectors')"
        assert await page.evaluate(f"{table}.offsetWidth <= {table}.parentElement.clientWidth")
        assert page.errors == []


async def test_a_group_that_is_at_rest_says_so(page: Page) -> None:
    groups = told(settled())
    async with serving(state(connect=groups)) as server:
        await page.open(f"{server.url}connect")
        await page.until(f"{TEXT}.includes('the same as Kafka\\'s own assignor')")
        text = await page.evaluate(TEXT)
        assert "Contradictions" not in text
        assert "no worker" not in text
        assert await page.evaluate("document.querySelectorAll('.workers .kind.active').length") == 5
        assert page.errors == []


async def test_a_group_without_topics_says_what_is_not_known(page: Page) -> None:
    cluster = WorkerCluster(Group({"A": 1}))
    cluster.state.connect.read_topics([])
    cluster.group.join("W1")
    cluster.round()
    async with serving(state(connect=told(cluster))) as server:
        await page.open(f"{server.url}connect")
        await page.until(f"{TEXT}.includes('caughtup found no topics of a worker cluster')")
        assert page.errors == []
