"""``/api/groups/GROUP/why`` on loopback."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web import why as module
from caughtup.models.records.fields import ABSENT
from caughtup.models.shown.consumer_group import (
    ConsumerGroupExplanation,
    explain_consumer_group,
)
from caughtup.models.why.explain import why
from caughtup.models.why.links import Why
from tests.support.observability.site import Site
from tests.support.states import (
    GAINING,
    HOSTILE,
    KEEPING_UP,
    NOW_MS,
    STOPPED,
    assess,
    everything,
    judged,
)


@pytest.mark.parametrize("group", [STOPPED, GAINING, KEEPING_UP])
async def test_it_answers_with_the_links_of_the_state(group: str) -> None:
    async with Site(judged()) as site, site.get(f"/api/groups/{group}/why") as response:
        assert (response.status, response.content_type) == (200, "application/json")
        found = msgspec.json.decode(await response.read(), type=Why)
    assert found == why(site.state, group, NOW_MS)
    assert found.links


@pytest.mark.parametrize("group", ["plain", HOSTILE])
async def test_an_explanation_is_that_of_the_state(group: str) -> None:
    path = f"/api/groups/{quote(group, safe='')}/explanation"
    async with Site(everything()) as site, site.get(path) as response:
        if group == HOSTILE and response.status == 404:
            assert await response.json() == {"error": module.NO_CONSUMERS}
            return
        assert response.status == 200
        found = msgspec.json.decode(await response.read(), type=ConsumerGroupExplanation)
    assert found.members
    assert found.says
    found.says = ABSENT
    assert found == explain_consumer_group(site.state, group)


async def test_a_hostile_name_is_a_group_like_others() -> None:
    state = everything()
    assess(state, NOW_MS)
    path = f"/api/groups/{quote(HOSTILE, safe='')}/why"
    async with Site(state) as site, site.get(path) as response:
        assert response.status == 200
        assert (await response.json())["group"] == HOSTILE


async def test_an_unknown_group_is_not_found() -> None:
    async with Site(judged()) as site, site.get("/api/groups/nobody/why") as response:
        assert response.status == 404
        assert await response.json() == {"error": module.NO_GROUP}


async def test_it_needs_the_token_if_one_is_set(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret")
    async with Site(judged(), web_token_file=file) as site:
        assert await site.status(f"/api/groups/{STOPPED}/why") == 401
        headers = {"Authorization": "Bearer secret"}
        assert await site.status(f"/api/groups/{STOPPED}/why", headers=headers) == 200


async def test_a_failure_is_counted_and_costs_this_answer_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "why_steps", broken)
    async with Site(judged(), Health(ready=True)) as site:
        assert await site.status(f"/api/groups/{STOPPED}/why") == 500
        assert await site.status(f"/api/view?group={STOPPED}") == 200
        assert site.state.faults.totals["page", "ZeroDivisionError"] == 1
