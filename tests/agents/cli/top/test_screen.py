"""``caughtup top`` by Textual's own test driver: keys, sizes, and a source that is away for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input

from caughtup.agents.cli.top import feed
from caughtup.agents.cli.top import screen as screen_of_top
from caughtup.agents.cli.top.screen import LinesTable, TopApp
from caughtup.models.records.fields import changed
from caughtup.models.shown.groups import GroupLine
from tests.support.lag_program import LONG_GROUP, state
from tests.support.states import GAINING, NOW_MS, STOPPED
from tests.support.top_sources import RIGHT_TO_LEFT, FakeSource, many_groups, page

SECONDS = 20.0


@pytest.fixture
def source() -> FakeSource:
    made = state()
    return FakeSource(page(made, NOW_MS), made)


def app_of(source: FakeSource) -> TopApp:
    return TopApp(source, 0.05)


def screen(app: TopApp) -> list[str]:
    """Return the screen's lines, as they are on the terminal."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


async def until(pilot: Pilot[None], true: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(SECONDS):
        while not true():
            await pilot.pause(0.02)
    assert true(), what


async def shows(pilot: Pilot[None], said: str) -> list[str]:
    """Wait until the screen says something, and return it."""
    app = pilot.app
    assert isinstance(app, TopApp)
    await until(pilot, lambda: any(said in line for line in screen(app)), said)
    return screen(app)


async def test_groups_then_partitions_then_back_with_the_cursor_where_it_was(
    source: FakeSource,
) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        shown = await shows(pilot, STOPPED)
        assert shown[0].startswith("cluster-1 at http://caughtup.example:8080, ")
        tabs = " 1 groups 5  2 applications 0  3 reassignments 0  4 connect 0"
        assert shown[1] == tabs
        await pilot.press("down", "enter")
        shown = await shows(pilot, "4900")
        await shows(pilot, "PARTITION")
        assert shown[2] == STOPPED
        await pilot.press("escape")
        await shows(pilot, LONG_GROUP[:5])
        assert app.query_one(LinesTable).chosen == (STOPPED,)
        assert "60 s from commit" not in "".join(screen(app))


async def test_keys_choose_sort_and_filter(source: FakeSource) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "by state")
        await pilot.press("s")
        shown = await shows(pilot, "by lag")
        assert shown[3].split()[0].startswith("connect-")
        await pilot.press("2")
        await shows(pilot, "no Kafka Streams application")
        await pilot.press("tab")
        await shows(pilot, "no partition is in movement")
        await pilot.press("tab", "tab", "slash", *"q1s gain")
        await shows(pilot, "0 of 5 have 'q1s gain'")
        for _ in range(4):
            await pilot.press("left")
        await pilot.press("backspace", "backspace", "backspace", "backspace")
        await shows(pilot, "1 of 5 have 'gain'")
        await pilot.press("enter")
        assert app.query_one(LinesTable).has_focus
        assert not app.query_one(Input).display
        assert app.query_one(LinesTable).chosen == (GAINING,)
        await pilot.press("escape")
        await shows(pilot, STOPPED)


async def test_the_cursor_stays_on_its_line_when_others_come(source: FakeSource) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, STOPPED)
        await pilot.press("down")
        table = app.query_one(LinesTable)
        assert (table.cursor_row, table.chosen) == (1, (STOPPED,))
        new = GroupLine(group="new", status="stopped", lag=10**6, partitions=1)
        source.now = changed(source.now, groups=[new, *source.now.groups])
        await shows(pilot, "new ")
        assert (table.cursor_row, table.chosen) == (2, (STOPPED,))
        source.now = changed(source.now, groups=[changed(new, lag=77), *source.now.groups[1:]])
        await shows(pilot, " 77 ")


async def test_a_source_that_is_away_leaves_what_was_seen_with_its_age_and_comes_back(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.fail("nothing listens there")
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        shown = await shows(pilot, "asking http://caughtup.example:8080 for ")
        assert any(" s: nothing listens there" in line for line in shown)
        source.fails = None
        await shows(pilot, STOPPED)
        source.fail("it went away")
        shown = await shows(pilot, "s old, asking again: it went away")
        assert any(STOPPED in line for line in shown)
        await pilot.press("2", "1", "s")
        await shows(pilot, "by lag")
        await shows(pilot, "s old, asking again: it went away")
        source.fails = None
        await shows(pilot, " s ago")


async def test_a_source_that_takes_its_time_holds_no_key_up(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, STOPPED)
        hangs = feed.threading.Event()
        monkeypatch.setattr(source, "state", lambda: hangs.wait(SECONDS) and source.now)
        await pilot.press("s")
        await shows(pilot, "by lag")
        await pilot.press("down", "enter")
        await shows(pilot, "asking for its partitions")
        hangs.set()
        await shows(pilot, "PARTITION")


async def test_what_nobody_foresaw_ends_it_and_is_told(source: FakeSource) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, STOPPED)
        source.fails = KeyError("a defect")
        await until(pilot, lambda: app.broken, "it is told")
    assert isinstance(app.broken, KeyError)
    assert app.return_code == 1


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_it_ends_by_q_and_by_ctrl_c_from_wherever(key: str, source: FakeSource) -> None:
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, STOPPED)
        if key == "ctrl+c":
            await pilot.press("slash", "q")
            assert app.query_one(Input).value == "q"
        await pilot.press(key)
        await until(pilot, lambda: app._exit, "it ends")
    assert (app.broken, app.return_code or 0) == (None, 0)
    assert source.closed


async def test_an_answer_that_comes_while_it_ends_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, source: FakeSource
) -> None:
    app = app_of(source)
    async with app.run_test(size=(160, 40)) as pilot:
        await shows(pilot, LONG_GROUP)
        seen, close = app.answered, app._close_all
        assert seen is not None

        async def close_with_an_answer_under_way() -> None:
            await app.query_one("#status").remove()
            app.on_feed_message(screen_of_top.FeedMessage(seen))
            app.on_resize()
            await close()

        monkeypatch.setattr(app, "_close_all", close_with_an_answer_under_way)
    assert not app.is_there


async def test_it_follows_the_terminals_size(source: FakeSource) -> None:
    app = app_of(source)
    async with app.run_test(size=(160, 40)) as pilot:
        await shows(pilot, LONG_GROUP)
        for columns, lines in ((60, 12), (30, 5), (10, 3), (120, 50), (60, 20)):
            await pilot.resize_terminal(columns, lines)
            await pilot.pause(0.05)
            assert all(cell_len(line) <= columns for line in screen(app))
        shown = await shows(pilot, "11112222")
        assert any(line.startswith("connect-wa…") for line in shown)


async def test_a_thousand_groups_and_a_name_from_right_to_left_on_sixty_columns() -> None:
    # To draw a thousand lines twenty times a second would leave no time for the keys.
    app = TopApp(FakeSource(many_groups()), 1.0)
    async with app.run_test(size=(60, 20)) as pilot:
        shown = await shows(pilot, "1 groups 1,000")
        assert shown[3].startswith(RIGHT_TO_LEFT[:4])
        await pilot.press("end")
        await until(pilot, lambda: app.query_one(LinesTable).cursor_row == 999, "the last line")
        await shows(pilot, "group-00000")
        assert all(cell_len(line) <= 60 for line in screen(app))


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
async def test_states_are_coloured_unless_the_environment_forbids_it(
    monkeypatch: pytest.MonkeyPatch, source: FakeSource, no_color: str | None, coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    app = app_of(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, STOPPED)
        strips = app.screen._compositor.render_strips()
        colours = {
            segment.style.color.name
            for strip in strips
            for segment in strip
            if segment.style is not None and segment.style.color is not None
        }
    assert bool(colours - {"default"}) == coloured
