"""A scrape that takes longer than its scraper waits is refused, with the setting that helps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from caughtup.agents.web import scrapes, served_metrics
from tests.support.observability.site import Site

WAITS = "X-Prometheus-Scrape-Timeout-Seconds"
_SECONDS = 0.2


def slow(*_: object, **__: object) -> Iterator[bytes]:
    """Make text for longer than a short scraper waits."""
    until = time.monotonic() + 3 * _SECONDS
    while time.monotonic() < until:
        yield b"x 1\n"


@pytest.mark.parametrize(
    ("granularity", "helps"),
    [
        ("partition", 'metrics_granularity = "topic"'),
        ("topic", 'metrics_granularity = "group"'),
        ("group", "metrics_group_limit"),
    ],
)
async def test_a_scraper_that_waits_in_vain_is_told_what_helps(
    granularity: str, helps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []

    def counted(*arguments: object, **options: object) -> Iterator[bytes]:
        made.append(True)
        return slow()

    monkeypatch.setattr(served_metrics, "exposition", counted)
    async with Site(metrics_granularity=granularity) as site:
        for _ in range(3):
            async with site.get("/metrics", headers={WAITS: str(_SECONDS)}) as answer:
                said = await answer.text()
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) > 0
            assert helps in said
            assert said.count("\n") == 1
        assert len(made) == 1, "the next are refused before anything is made"
        assert site.health.web_refusals == {"series": 3}
        async with site.get("/metrics", headers={WAITS: "20"}) as answer:
            assert answer.status == 200
        assert await site.status("/metrics") == 200


async def test_one_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "_REFUSED_SECONDS", 0.0)
    async with Site() as site:
        with monkeypatch.context() as while_it_is_slow:
            while_it_is_slow.setattr(served_metrics, "exposition", slow)
            assert await site.status("/metrics", headers={WAITS: str(_SECONDS)}) == 503
        assert await site.status("/metrics", headers={WAITS: "10"}) == 200


@pytest.mark.parametrize("waits", ["nan", "x", "-1", "0"])
async def test_what_is_no_time_out_is_none(waits: str) -> None:
    async with Site() as site:
        assert await site.status("/metrics", headers={WAITS: waits}) == 200
