"""The button "Who has what?" on a group's page: members, who decided, what another would change."""

from __future__ import annotations

from caughtup.models.polls.batch import decode_batch
from tests.models.state.test_revoking import current
from tests.observability.browser import TEXT, Page
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know
from tests.support.observability.site import Site
from tests.support.states import assess, cluster_state

BUTTON = "[...document.querySelectorAll('button')].find(b => b.innerText === 'Who has what?')"
HOSTILE = "<b onclick=alert(1)>b"


async def test_it_shows_members_and_what_is_between_them_and_their_target(page: Page) -> None:
    state = cluster_state()
    played = PlayedGroup("g", topics={"t": (b"t" * 16, 4)})
    know(state, played)
    for name in ("a", HOSTILE):
        played.join(name, ["t"])
    state.apply_batch(decode_batch(played.take()), AT_MS)
    state.apply_batch(decode_batch([current("a", (0, 1), (2, 3))]), AT_MS)
    state.apply_batch(decode_batch([current(HOSTILE, (), ())]), AT_MS)
    assess(state, AT_MS)
    async with Site(state) as site:
        await page.open(site.url("/groups/g"))
        await page.until(f"{BUTTON} !== undefined")
        await page.click(BUTTON)
        await page.until(f"{TEXT}.includes('has to revoke')")
        said = await page.evaluate("document.querySelector('[aria-label=Members]').innerText")
        assert "The group coordinator decided by the assignor uniform" in said
        assert f"a still has to revoke t 2-3, for which {HOSTILE} waits" in said
        assert "Members have 0 to 4 partitions" in said
        assert "One member more: " in said
        assert "(2 to revoke)" in said
        assert "(2 to come)" in said
        assert await page.evaluate("document.querySelectorAll('b[onclick]').length") == 0
        assert "who=1" in await page.evaluate("location.search")
        assert page.errors == []
