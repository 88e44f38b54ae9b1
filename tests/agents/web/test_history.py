"""``/api/groups/GROUP/history`` on loopback: read elsewhere, within bounds, and failing alone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from caughtup.agents.web import history as module
from tests.agents.cli.history.tables import a_lag, add
from tests.support.observability.site import Site
from tests.support.states import NOW_MS

PATH = "/api/groups/orders/history"


async def answered(site: Site, path: str) -> tuple[int, dict[str, object]]:
    async with site.get(path) as response:
        return response.status, await response.json()


async def test_without_the_setting_there_is_none_and_the_page_does_not_offer_it() -> None:
    async with Site() as site:
        assert await answered(site, PATH) == (404, {"error": "history_uri is not set"})
        assert "history" not in (await answered(site, "/api/view?view=overview"))[1]


async def test_days_are_read_from_the_tables_and_the_page_offers_them(tmp_path: Path) -> None:
    an_hour_ago = datetime.fromtimestamp(NOW_MS / 1000 - 3_600, UTC)
    add(tmp_path, "lag", {**a_lag(0, 0, 7, end=70), "as_of": an_hour_ago})
    async with Site(history_uri=str(tmp_path)) as site:
        status, told = await answered(site, f"{PATH}?days=1")
        assert (status, told["now_ms"]) == (200, NOW_MS)
        assert told["series"]["lag"][0] is None  # type: ignore[index]
        assert told["series"]["lag"][-1] == 7  # type: ignore[index]
        assert (await answered(site, "/api/view?view=overview"))[1]["history"] is True


async def test_what_can_not_be_read_says_why_and_everything_else_goes_on(tmp_path: Path) -> None:
    async with Site(history_uri=str(tmp_path / "nowhere")) as site:
        status, told = await answered(site, PATH)
        assert status == 502
        assert "no table lag at" in str(told["error"])
        assert await site.status("/ready") == 200


async def test_the_reader_has_the_s3_of_the_settings_and_its_secret_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tells = (
        "import json, os\nprint(json.dumps({k: v for k, v in os.environ.items() if 'AWS' in k}))"
    )
    (tmp_path / "tells_environment.py").write_text(tells)
    monkeypatch.setattr(module, "_READER", "tells_environment")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://of.the.environment")
    secret = tmp_path / "secret"
    given = {"s3_endpoint": "http://s3.example:9000", "s3_access_key": "AKIA"}
    async with Site(history_uri="s3://lake/history", s3_secret_key_file=secret, **given) as site:
        status, told = await answered(site, PATH)
        assert (status, str(told["error"])[:28]) == (502, "setting s3_secret_key_file: ")
        secret.write_text("hunter2")
        status, told = await answered(site, PATH)
        assert (status, told["AWS_SECRET_ACCESS_KEY"]) == (200, "hunter2")
        assert (told["AWS_ENDPOINT_URL"], told["AWS_ACCESS_KEY_ID"]) == tuple(given.values())


async def test_a_reader_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.01)
    async with Site(history_uri=str(tmp_path)) as site:
        status, told = await answered(site, PATH)
        assert (status, told) == (502, {"error": "it took longer than 0 s"})


async def test_so_many_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_read, asked = asyncio.Event(), list[str]()

    async def read(self: object, uri: str, group: str, days: int) -> bytes:
        asked.append(group)
        await may_read.wait()
        return b"{}"

    monkeypatch.setattr(module.HistoryCharts, "_read", read)
    async with Site(history_uri=str(tmp_path)) as site:
        may_read.set()
        assert await site.status("/api/groups/known/history") == 200
        may_read.clear()
        asked.clear()
        waiting = [asyncio.create_task(site.status(f"/api/groups/g{n}/history")) for n in range(7)]
        # Both of those that are too many: one that came later would find a place again.
        assert [await one for one in islice(asyncio.as_completed(waiting), 2)] == [503, 503]
        assert len(asked) == 1  # one at a time
        assert await site.status("/api/groups/known/history") == 200  # of a moment ago
        may_read.set()
        assert sorted(await asyncio.gather(*waiting)) == [200] * 5 + [503] * 2
        assert len(asked) == 5


@pytest.mark.parametrize(
    "days", ["0", "91", "-1", "x", "²", "9" * 40, "000100", "0001" + "9" * 5_000]
)
async def test_other_days_are_refused(tmp_path: Path, days: str) -> None:
    async with Site(history_uri=str(tmp_path)) as site:
        assert await site.status(f"{PATH}?days={days}") == 400
