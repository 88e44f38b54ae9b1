"""The tools of ``caughtup mcp``, as the official package mcp serves them; all of them only read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Annotated

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

import caughtup
from caughtup.agents.cli.mcp.answers import NAMES, Answer, WhyAnswer, fitted
from caughtup.agents.cli.mcp.sources import MOST, AnswerSource
from caughtup.agents.errors import UserError

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_INSTRUCTIONS = (
    "Answers about an Apache Kafka cluster: the lag of its groups and why they lag. Begin with "
    "groups, then ask why of a group that is not ok. Nothing here changes the cluster. Each answer "
    f"is JSON below 4 kB; left_out counts what did not fit. {NAMES.capitalize()}."
)
Group = Annotated[
    str,
    Field(
        min_length=1, max_length=1_000, description="The group's name: group.id, application.id."
    ),
]
Limit = Annotated[int, Field(ge=1, le=MOST, description="The most groups of the answer.")]


def make_server(source: AnswerSource, executor: Executor) -> MCPServer:
    """Return a server of the tools; each asks ``source`` in the executor's thread."""
    server: MCPServer = MCPServer(
        "caughtup",
        instructions=_INSTRUCTIONS,
        version=caughtup.__version__,
        log_level="WARNING",
        subscriptions=False,
    )

    async def answered(ask: Callable[[], Answer]) -> CallToolResult:
        loop = asyncio.get_running_loop()
        try:
            values = fitted(await loop.run_in_executor(executor, ask))
        except UserError as error:
            raise ToolError(error.message) from None
        text = msgspec.json.encode(values).decode()
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=values
        )

    async def groups(limit: Limit = 10) -> CallToolResult:
        """List groups with lag and verdict, such as ok, slow or stopped, the worst first."""
        return await answered(partial(source.groups, limit))

    async def why(group: Group) -> CallToolResult:
        """Say why a group lags: the true cause first, how sure it is, and what is not known."""
        return await answered(lambda: WhyAnswer(why=source.why(group)))

    async def lag(group: Group) -> CallToolResult:
        """Show a group's lag in offsets and seconds, and its partitions, the worst first."""
        return await answered(partial(source.lag, group))

    async def rebalances(group: Group) -> CallToolResult:
        """Show a group's last rebalances: what caused each, how sure that is, and what it cost."""
        return await answered(partial(source.rebalances, group))

    async def reassignments() -> CallToolResult:
        """Show partitions in movement: progress, verdict, cause and advice, the worst first."""
        return await answered(source.reassignments)

    for tool in (groups, why, lag, rebalances, reassignments):
        server.add_tool(tool, annotations=_READS)
    return server
