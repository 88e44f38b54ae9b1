"""``caughtup top`` on a real terminal, asking a real web server: it leaves the terminal as it was."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner

from caughtup.agents.main import main
from caughtup.agents.process.health import Health
from caughtup.demo.processes.children import free_ports
from tests.support.lag_program import state
from tests.support.observability.site import Site
from tests.support.states import STOPPED
from tests.support.terminal import Terminal

TOP = [sys.executable, "-m", "caughtup.agents", "top"]
#: How a terminal is left: the cursor shown, and back from the alternate screen.
CURSOR, ALTERNATE, BACK = b"\x1b[?25h", b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
async def site(port: int) -> AsyncIterator[Site]:
    async with Site(state(), Health(ready=True, reader_lag=0), web_port=port) as running:
        yield running


def is_clean(terminal: Terminal) -> bool:
    written = terminal.written
    return (
        terminal.modes == terminal.before
        and written.rindex(BACK) > written.rindex(ALTERNATE)
        and CURSOR in written[written.rindex(ALTERNATE) :]
        and b"Traceback" not in written
    )


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("q", 0),
        ("\x03", 0),
        (signal.SIGINT, 0),
        (signal.SIGTERM, 128 + 15),
        (signal.SIGHUP, 128 + 1),
    ],
    ids=["q", "Ctrl-C", "SIGINT", "SIGTERM", "SIGHUP"],
)
async def test_however_it_ends_the_terminal_is_as_before(
    site: Site, end: str | signal.Signals, code: int
) -> None:
    with Terminal([*TOP, "--service", site.url("")], columns=60) as terminal:
        await asyncio.to_thread(terminal.wait_for, STOPPED)
        if isinstance(end, signal.Signals):
            terminal.process.send_signal(end)
        else:
            terminal.press(end)
        assert await asyncio.to_thread(terminal.ended) == code
        assert is_clean(terminal)


async def test_a_service_that_goes_away_for_a_while(site: Site, port: int) -> None:
    with Terminal([*TOP, "--service", site.url(""), "--every", "0.5"], columns=100) as terminal:
        await asyncio.to_thread(terminal.wait_for, STOPPED)
        terminal.press("\r")
        await asyncio.to_thread(terminal.wait_for, "PARTITION")
        await site.server.stop()
        await asyncio.to_thread(terminal.wait_for, "s old, asking again: nothing listens at")
        before = len(terminal.text)
        terminal.resize(60, 20)
        await asyncio.to_thread(terminal.wait_for, "PARTITION", since=before)
        before = len(terminal.text)
        async with Site(state(), Health(ready=True, reader_lag=0), web_port=port):
            await asyncio.to_thread(terminal.wait_for, "cluster-1 at http", since=before)
            terminal.press("q")
            assert await asyncio.to_thread(terminal.ended) == 0
        assert is_clean(terminal)


async def test_keys_go_to_the_filter_while_it_is_open(site: Site) -> None:
    with Terminal([*TOP, "--service", site.url("")]) as terminal:
        await asyncio.to_thread(terminal.wait_for, STOPPED)
        terminal.press("/")
        await asyncio.to_thread(terminal.wait_for, "words that a line has")
        terminal.press("q2s1r")
        await asyncio.to_thread(terminal.wait_for, "0 of 5 have 'q2s1r'")
        terminal.press("\x03")
        assert await asyncio.to_thread(terminal.ended) == 0


async def test_without_colours_there_are_none(site: Site) -> None:
    environment = {"NO_COLOR": "1"}
    with Terminal([*TOP, "--service", site.url("")], environment=environment) as terminal:
        await asyncio.to_thread(terminal.wait_for, STOPPED)
        terminal.press("q")
        await asyncio.to_thread(terminal.ended)
    assert b"\x1b[31m" not in terminal.written
    assert b"\x1b[38;" not in terminal.written


def test_what_cannot_be_connected_to_is_told_before_the_screen_is_taken() -> None:
    with Terminal([*TOP, "-b", "127.0.0.1:1"], columns=200) as terminal:
        assert terminal.ended(60) == 1
        assert ALTERNATE not in terminal.written
        assert "caughtup: cannot reach Kafka at 127.0.0.1:1" in terminal.text


def test_without_a_terminal_it_says_what_prints() -> None:
    ran = CliRunner().invoke(main, ["top"])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert (
        ran.stderr
        == "caughtup: caughtup top needs a terminal; caughtup lag and caughtup reassignments do not\n"
    )


def test_without_textual_it_says_what_to_type() -> None:
    program = "import sys; sys.modules['textual.app'] = sys.modules['textual'] = None; "
    program += "from caughtup.agents.main import main; main(['top'], 'caughtup')"
    with Terminal([sys.executable, "-c", program], columns=200) as terminal:
        assert terminal.ended() == 1
        assert "; type: pip install 'caughtup[top]'" in terminal.text
