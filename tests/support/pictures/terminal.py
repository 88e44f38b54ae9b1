"""Pictures of the terminal: a recording of commands, and ``caughtup top``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.segment import Segment

from caughtup.agents.cli.top.screen import TopApp
from tests.support.pictures.played_cluster import NOW_MS, Cluster
from tests.support.pictures.scene_of_groups import play_unwell
from tests.support.pictures.scenes import scale_out
from tests.support.pictures.terminal_commands import COLUMNS, SERVICE, printed, service_of
from tests.support.pictures.terminal_drawing import Screen, recording, still
from tests.support.top_sources import FakeSource, page

_COMMANDS = (
    f"caughtup lag --service {SERVICE}",
    "caughtup explain payments-totals 0_3",
    (
        "caughtup simulate payments-totals --add 1 --restore-rate 2900 "
        "--assignor high_availability --assignor minimal_movement"
    ),
    f"caughtup safe payments-totals --stop payments-2 --service {SERVICE}",
)
_TOP = (104, 18)


def _cluster() -> Cluster:
    return scale_out(play_unwell)


def commands() -> str:
    """Draw commands that run on a cluster one after another."""
    cluster = _cluster()
    with service_of(cluster) as address:
        screens = [Screen(command, printed(cluster, command, address)) for command in _COMMANDS]
    return recording(screens, COLUMNS, "A terminal: caughtup lag, explain, simulate and safe")


def top() -> str:
    """Draw ``caughtup top`` of a cluster."""
    lines = asyncio.run(_screen(_cluster()))
    return still(lines, _TOP[0], "caughtup top: groups, the worst first")


async def _screen(cluster: Cluster) -> list[list[Segment]]:
    source = FakeSource(page(cluster.state, NOW_MS), cluster.state)
    source.where = SERVICE
    app = TopApp(source, 0.05)
    async with app.run_test(size=_TOP) as pilot:
        async with asyncio.timeout(20):
            while app.answered is None or "search-indexer" not in _text(app):
                await pilot.pause(0.02)
        return [list(strip) for strip in app.screen._compositor.render_strips()]


def _text(app: TopApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


TERMINALS: dict[str, Callable[[], str]] = {"commands.svg": commands, "top.svg": top}
