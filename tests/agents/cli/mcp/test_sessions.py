"""``caughtup mcp``: real sessions of the package mcp, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from caughtup.agents.cli.mcp.answers import MOST_BYTES, NAMES
from caughtup.agents.main import main
from caughtup.models.records.fields import json_values
from caughtup.models.why.explain import why
from tests.support.observability.site import Site
from tests.support.states import GAINING, HOSTILE, NOW_MS, STOPPED, assess, everything, judged

COMMAND = ["-m", "caughtup.agents", "mcp"]
SECONDS = 60.0
TOOLS = {"groups", "why", "lag", "rebalances", "reassignments"}


@asynccontextmanager
async def over_stdio(*options: str) -> AsyncIterator[Client]:
    given = StdioServerParameters(command=sys.executable, args=[*COMMAND, *options])
    async with asyncio.timeout(SECONDS), Client(given) as client:
        yield client


@asynccontextmanager
async def over_http(*options: str, token: str | None = None) -> AsyncIterator[Client]:
    async with listening(*options) as url, httpx2.AsyncClient(headers=bearer(token)) as http:
        transport = streamable_http_client(url, http_client=http)
        async with asyncio.timeout(SECONDS), Client(transport) as client:
            yield client


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def listening(*options: str) -> AsyncIterator[str]:
    """Run the command on a free port, and yield the address that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, "--http", "0", *options, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                line = (await process.stderr.readline()).decode()
                assert line, "it ended"
                if found := re.search(r"http://127\.0\.0\.1:\d+/mcp", line):
                    break
        yield found[0]
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), SECONDS)


async def answer(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """Call a tool; return its answer, which is the same as text and as a structure."""
    result = await client.call_tool(tool, arguments)
    [text] = result.content
    assert isinstance(text, TextContent)
    assert not result.is_error, text.text
    assert len(text.text.encode()) <= MOST_BYTES
    values: dict[str, Any] = json.loads(text.text)
    assert values == result.structured_content
    assert values["about_names"] == NAMES
    return values


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(judged()) as running:
        yield running


async def test_a_session_over_stdio_asks_the_service(site: Site) -> None:
    async with over_stdio("--service", site.url("")) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == TOOLS
        for tool in tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            assert tool.description
        worst = await answer(client, "groups", limit=2)
        assert worst["groups"][0]["group"] in (STOPPED, "never")
        assert worst["left_out"] == 2
        explained = why(site.state, STOPPED, NOW_MS)
        assert explained is not None
        assert (await answer(client, "why", group=STOPPED))["why"] == json_values(explained)
        lag = await answer(client, "lag", group=GAINING)
        assert lag["group"]["group"] == GAINING
        assert [one["partition"] for one in lag["partitions"]] == [0]
        assert (await answer(client, "rebalances", group=STOPPED))["rebalances"] == []
        assert (await answer(client, "reassignments"))["reassignments"] == []


async def test_what_is_not_there_is_an_error_of_the_tool(site: Site) -> None:
    async with over_stdio("--service", site.url("")) as client:
        for tool in ("why", "lag", "rebalances"):
            result = await client.call_tool(tool, {"group": "nobody"})
            assert result.is_error
            assert "there is no group of this name" in str(result.content)
        assert (await client.call_tool("groups", {"limit": 10**9})).is_error
        assert (await client.call_tool("why", {"group": ""})).is_error
        assert (await client.call_tool("delete", {})).is_error


@pytest.mark.heavy
async def test_hostile_names_are_data() -> None:
    state = everything()
    assess(state, NOW_MS)
    async with Site(state) as site, over_stdio("--service", site.url("")) as client:
        found = await answer(client, "why", group=HOSTILE)
        assert found["why"]["group"] == HOSTILE
        moving = await answer(client, "reassignments")
        assert [one["topic"] for one in moving["reassignments"]] == ["orders-in"]


@pytest.mark.heavy
async def test_over_http_it_answers_the_same(site: Site) -> None:
    async with over_http("--service", site.url("")) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        explained = why(site.state, STOPPED, NOW_MS)
        assert explained is not None
        assert (await answer(client, "why", group=STOPPED))["why"] == json_values(explained)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("secret\n")
    return file


async def test_over_http_it_is_behind_the_pages_token(token_file: Path) -> None:
    async with Site(judged(), web_token_file=token_file) as site:
        options = ("--service", site.url(""), "--token-file", str(token_file))
        async with over_http(*options, token="secret") as client:
            assert (await answer(client, "why", group=STOPPED))["why"]["verdict"] == "stopped"
        async with listening(*options) as url, aiohttp.ClientSession() as plain:
            for headers in (bearer(None), bearer("wrong"), {"Authorization": "Basic c2VjcmV0"}):
                async with plain.post(url, json={}, headers=headers) as response:
                    assert response.status == 401
                    assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.heavy
async def test_over_http_other_hosts_and_their_pages_are_refused(site: Site) -> None:
    async with (
        listening("--service", site.url("")) as url,
        aiohttp.ClientSession() as plain,
    ):
        for headers, status in (
            ({"Host": "evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
        ):
            async with plain.post(url, json={}, headers=headers) as response:
                assert response.status == status, headers
        async with plain.post(url, data=b"x" * (1 << 20)) as response:
            assert response.status in (400, 413)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", "127.0.0.1:99999", "١"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    ran = CliRunner().invoke(main, ["mcp", "--http", address])
    assert ran.exit_code == 2
    assert "is not [HOST:]PORT" in ran.stderr


@pytest.mark.heavy
async def test_a_taken_port_is_refused_in_a_line(site: Site) -> None:
    ran = await asyncio.create_subprocess_exec(
        *(sys.executable, *COMMAND, "--http", str(site.server.port), "--service", site.url("")),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(ran.communicate(), SECONDS)
    assert ran.returncode == 1
    assert said.decode().splitlines()[-1].endswith("choose another with --http")


def test_other_commands_do_not_import_the_package() -> None:
    commands = "caughtup.agents.main, caughtup.agents.cli.why, caughtup.agents.cli.mcp.main"
    program = f"import sys, {commands}; print('mcp' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "False\n"
