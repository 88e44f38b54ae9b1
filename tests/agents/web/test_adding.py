"""``/api/groups/GROUP/cost`` on loopback."""

from __future__ import annotations

import pytest

from caughtup.agents.process.health import Health
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import everything


async def test_it_says_what_instances_more_would_cost_by_both() -> None:
    async with Site(everything(), Health(ready=True)) as site:
        async with site.get(f"/api/groups/{GROUP}/cost?add=1") as response:
            assert response.status == 200
            told = await response.json()
        assert (told["add"], told["instances"], told["generation"]) == (1, 2, 7)
        for cost in (told["cost"], told["kafka_cost"]):
            assert cost.keys() == {"copies", "offsets", "rebalances", "seconds", "estimated"}


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("plain/cost?add=1", 404, "no Kafka Streams application"),
        (f"{GROUP}/cost?add=0", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=101", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=two", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=%C2%B2", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=000000001000", 400, "?add=N, from 1 to 100"),
        (f"{GROUP}/cost?add=000000001{'9' * 5_000}", 400, "?add=N, from 1 to 100"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(path: str, status: int, why: str) -> None:
    async with (
        Site(everything(), Health(ready=True)) as site,
        site.get(f"/api/groups/{path}") as response,
    ):
        assert response.status == status
        assert why in (await response.json())["error"]
