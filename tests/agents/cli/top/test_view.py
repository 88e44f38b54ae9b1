"""What is to be on the screen, as values: every line fits, whatever is in names."""

from __future__ import annotations

import random
import time

import msgspec
import pytest
from rich.cells import cell_len

from caughtup.agents.cli.top.contents import OVERVIEWS, applications, groups, reassignments
from caughtup.agents.cli.top.feed import Answered
from caughtup.agents.cli.top.view import Screenful, TopView, status_line, tab_labels
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import changed, json_values
from caughtup.models.shown.connect_lines import (
    ConnectorLine,
    ConnectView,
    ContradictionLine,
    ItemLine,
    UnassignedLine,
    WorkerLine,
)
from caughtup.models.shown.groups import GroupLine
from tests.support.connect.clusters import settled
from tests.support.groups.records import GROUP
from tests.support.lag_program import LONG_GROUP, state
from tests.support.reassignments.reassigning import (
    ORPHANED_MS,
    SEEN_MS,
    cluster_observation,
    reassigning,
)
from tests.support.states import GAINING, HOSTILE, KEEPING_UP, NOW_MS, STOPPED, everything
from tests.support.top_sources import RIGHT_TO_LEFT, FakeSource, many_groups, page

SEED = random.SystemRandom().randrange(10**9)


def seen(source: FakeSource, group: str | None = None) -> Answered:
    return Answered(0.0, source.state(), group, None if group is None else source.lines(group))


def texts(screenful: Screenful) -> list[str]:
    """Return every line that may not be wider than the screen."""
    table = screenful.table
    lines = ["".join(row) for row in (table.headings, *table.rows)]
    return [*lines, "".join(screenful.tabs), screenful.summary, screenful.keys]


def names(screenful: Screenful) -> list[str]:
    return [row[0].strip() for row in screenful.table.rows]


@pytest.fixture(scope="module")
def source() -> FakeSource:
    made = state()
    return FakeSource(page(made, NOW_MS), made)


@pytest.mark.parametrize("width", [30, 60, 80, 160])
def test_every_line_fits_and_no_figure_is_cut(width: int, source: FakeSource) -> None:
    for told in (
        source,
        FakeSource(many_groups(50)),
        FakeSource(page(everything(), NOW_MS)),
        FakeSource(page(reassigning(), SEEN_MS)),
    ):
        view = TopView()
        for number in range(len(OVERVIEWS)):
            view.choose(number)
            shown = view.screenful(seen(told), width)
            if width >= 60:
                assert max(map(cell_len, texts(shown))) <= width, (width, number)
            for row in shown.table.rows:
                assert [cell_len(cell) for cell in row] == [*shown.table.widths]
                assert "".join(row).isprintable()
    lags = {row[2].strip() for row in TopView().screenful(seen(source), width).table.rows}
    assert "11112222" in lags


def test_the_worst_group_is_first_and_other_orders_follow(source: FakeSource) -> None:
    view = TopView()
    assert names(view.screenful(seen(source), 160)) == [
        "never",
        STOPPED,
        GAINING,
        LONG_GROUP,
        KEEPING_UP,
    ]
    view.sort()
    assert names(view.screenful(seen(source), 160))[0] == LONG_GROUP
    assert view.screenful(seen(source), 160).summary == "by lag"
    for _ in range(3):
        view.sort()
    assert view.screenful(seen(source), 160).summary == "by state"


def test_a_filter_takes_words_of_any_cell_and_each_table_keeps_its_own(source: FakeSource) -> None:
    view = TopView()
    view.sought = "STOPPED k"
    assert names(view.screenful(seen(source), 160)) == []
    view.sought = "STOPPED 49"
    shown = view.screenful(seen(source), 160)
    assert (names(shown), shown.summary) == ([STOPPED], "by state, 1 of 5 have 'STOPPED 49'")
    view.choose(1)
    assert view.sought == ""
    view.choose(4)
    assert (view.chosen, view.sought) == (0, "STOPPED 49")
    view.back()
    assert view.sought == ""


def test_an_opened_group_has_its_partitions_and_its_reason(source: FakeSource) -> None:
    view = TopView()
    view.open((STOPPED,))
    assert view.group == STOPPED
    waiting = view.screenful(seen(source), 160)
    assert waiting.about[-1] == "asking for its partitions"
    shown = view.screenful(seen(source, STOPPED), 160)
    assert [(row[0].strip(), row[4].strip()) for row in shown.table.rows] == [
        ("clicks", "4900"),
        ("clicks", "0"),
    ]
    assert shown.about[0] == STOPPED
    assert shown.about[1].startswith("stopped: clicks-1: 4,900 offsets to read and no commit for")
    assert view.screenful(seen(source, GAINING), 160).table.rows == (), "those of another group"
    view.back()
    assert view.group is None


def test_an_opened_application_has_every_copy_of_its_tasks() -> None:
    told = FakeSource(page(everything(), NOW_MS))
    view = TopView()
    view.choose(1)
    (key,) = view.screenful(seen(told), 160).table.keys
    assert key == (GROUP,)
    view.open(key)
    assert view.group is None, "its state has its tasks"
    shown = view.screenful(seen(told), 160)
    rows = [[cell.strip() for cell in row] for row in shown.table.rows]
    assert [row[:4] for row in rows] == [
        ["0_0", "a", "active", "-"],
        ["0_1", "a", "active", "-"],
        ["0_1", "b", "warmup", "50000"],
    ]
    assert shown.about[1].startswith("generation 7: ")
    assert "next probing rebalance in" in shown.about[2]


def test_an_opened_reassignment_has_its_copies_its_reason_and_then_its_end() -> None:
    made = reassigning()
    view = TopView()
    view.choose(2)
    keys = view.screenful(seen(FakeSource(page(made, SEEN_MS))), 160).table.keys
    assert keys == (("dead", 0), ("new", 0), ("fine", 0))
    view.open(keys[0])
    shown = view.screenful(seen(FakeSource(page(made, SEEN_MS))), 160)
    assert shown.about[:2] == ("dead-0", "dead target (destination-broker-down)")
    assert "away 3 min" in shown.about[2]
    assert shown.about[3].startswith("start broker 5")
    assert [[cell.strip() for cell in row] for row in shown.table.rows] == [
        ["5", "added", "no", "-", "-", "away, silent"],
        ["1", "removed", "yes", "100000", "100%", "-"],
    ]
    made.reassignments.end(TopicPartition("dead", 0), (5,), (5,), SEEN_MS)
    gone = view.screenful(seen(FakeSource(page(made, SEEN_MS))), 160)
    assert gone.about[-1].startswith("no longer in movement: completed after")


def test_a_diverging_reassignment_is_yellow_and_a_diverging_group_red() -> None:
    made = reassigning()
    told = page(made, SEEN_MS)
    told.reassignments[0].verdict = "diverging"
    told.groups = [GroupLine(group="g", partitions=1, lag=7, status="diverging")]
    view, colours = TopView(), {}
    for number, name in ((0, "groups"), (2, "reassignments")):
        view.choose(number)
        table = view.screenful(seen(FakeSource(told)), 160).table
        (row,) = (row for row in table.rows if any(cell.strip() == "diverging" for cell in row))
        at = [cell.strip() for cell in row].index("diverging")
        colours[name] = table.colours[at]["diverging"]
    assert colours == {"groups": "red", "reassignments": "yellow"}


def test_what_is_gone_is_said_and_what_there_is_none_of() -> None:
    nothing = FakeSource(changed(many_groups(1), groups=[]))
    view = TopView()
    assert view.screenful(seen(nothing), 60).about == ("no groups on this cluster",)
    for number, said in enumerate(
        ("this group is gone", "this application is gone", "no longer in movement")
    ):
        view.choose(number)
        view.open(("x", 0) if number == 2 else ("x",))
        assert view.screenful(seen(nothing), 60).about[-1] == said


def test_throttles_that_are_left_and_what_is_not_known_stand_above_the_reassignments() -> None:
    (*_, last) = reassignments(page(reassigning(), ORPHANED_MS)).about
    assert last.startswith("orphaned throttle on the topic left")
    made = reassigning()
    made.reassignments.apply_cluster(cluster_observation(SEEN_MS, missing=("the quorum",)))
    assert reassignments(page(made, SEEN_MS)).about == ("not known: the quorum",)


def test_names_of_any_script_fit_and_keep_both_ends() -> None:
    told = FakeSource(many_groups())
    view = TopView()
    for width in (60, 80):
        shown = view.screenful(seen(told), width)
        assert max(map(cell_len, texts(shown))) <= width
        name = names(shown)[0]
        start, _, end = name.partition("…")
        assert RIGHT_TO_LEFT.startswith(start)
        assert RIGHT_TO_LEFT.endswith(end)
        assert start
        assert end
    assert len(shown.table.rows) == 1_000
    assert HOSTILE not in "".join(
        names(view.screenful(seen(FakeSource(page(everything(), NOW_MS))), 60))
    )


def test_generated_names_and_widths_fit() -> None:
    print(f"seed {SEED}")
    draw = random.Random(SEED)
    alphabet = "abcé日本語אבגد\u0301\u200d\u202e\n\x1b😀-._"
    for _ in range(60):
        found = many_groups(1)
        found.groups = [
            GroupLine(
                group="".join(draw.choices(alphabet, k=draw.randrange(1, 250))) + str(n),
                partitions=draw.randrange(10**6),
                lag_at_least=draw.randrange(10**15),
                status=draw.choice(["ok", "unknown", "a-new-one"]),
            )
            for n in range(draw.randrange(1, 8))
        ]
        width = draw.randrange(60, 200)
        view = TopView()
        assert max(map(cell_len, texts(view.screenful(seen(FakeSource(found)), width)))) <= width
        view.open((found.groups[0].group,))
        assert all(
            cell_len(line) <= 3 * width
            for line in view.screenful(seen(FakeSource(found)), width).about
        )


def test_of_fifty_thousand_groups_a_thousand_are_shown_and_the_filter_finds_the_others() -> None:
    told = FakeSource(many_groups(50_000))
    view = TopView()
    shown = view.screenful(seen(told), 80)
    assert len(shown.table.rows) == 1_000
    assert shown.summary == "by state, the first 1,000 of 50,000"
    assert shown.tabs[0] == " 1 groups 50,000 "
    view.sought = "group-49998"
    assert names(view.screenful(seen(told), 80)) == ["group-49998"]


def test_the_lines_around_the_table_say_who_when_and_why_not() -> None:
    now = many_groups(1)
    assert status_line("http://h", None, 3.2, "", 80) == "asking http://h for 3 s"
    assert (
        status_line("http://h", None, 3, "no such host", 80)
        == "asking http://h for 3 s: no such host"
    )
    assert status_line("http://h", now, 2, "", 80) == "cluster-1 at http://h, 2 s ago"
    assert (
        status_line("http://h", changed(now, cluster_name="demo"), 300, "", 80)
        == "demo at http://h, 5 min ago"
    )
    assert (
        status_line("h", now, 14, "nothing listens", 80)
        == "14 s old, asking again: nothing listens"
    )
    unready = changed(now, unready=["standby: b is active"])
    assert status_line("h", unready, 1, "", 80).endswith("incomplete: standby: b is active")
    assert cell_len(status_line("h" * 99, now, 2, "\x1b[2J", 60)) <= 60
    names, short = ("groups", "applications"), ("groups", "apps")
    assert tab_labels(names, short, (1, 2000), 40) == [
        " 1 groups 1 ",
        " 2 applications 2,000 ",
    ]
    assert tab_labels(names, short, (1, 2), 24) == [" 1 groups 1 ", " 2 apps 2 "]
    assert tab_labels(names, short, (1, 2), 10) == [" 1 ", " 2 "]


CONNECT = ConnectView(
    group="connect-orders",
    generation=5,
    protocol="sessioned",
    result="match",
    delay_ms=0,
    next_rebalance_ms=NOW_MS + 240_000,
    next_revokes={},
    absences=[],
    history=[],
    workers=[
        WorkerLine(
            worker="w1:8083",
            member="m1",
            client_id="c1",
            host="h",
            url="http://w1:8083/",
            leader=True,
            connectors=["sink"],
            tasks=["sink-0"],
            revoked=[],
            delay_ms=0,
        )
    ],
    connectors=[ConnectorLine(name="sink", tasks=2)],
    unassigned=[UnassignedLine(name="sink-1", connector="sink", task=1, goes_to="w2:8083")],
    contradictions=[
        ContradictionLine(
            name="sink-0",
            connector="sink",
            task=0,
            contradiction="zombie",
            why="two workers say that they run it",
            waits=False,
        )
    ],
    items=[
        ItemLine(name="sink", connector="sink", workers=["w1:8083"], state="RUNNING"),
        ItemLine(name="sink-0", connector="sink", task=0, workers=["w1:8083"], state="FAILED"),
        ItemLine(name="sink-1", connector="sink", task=1, workers=[]),
    ],
)


def test_a_connect_group_has_its_work_opened_with_who_gets_what_nobody_has() -> None:
    idle = changed(CONNECT, group="idle", unassigned=[], contradictions=[], items=[])
    told = FakeSource(changed(many_groups(1), now_ms=NOW_MS, connect=[idle, CONNECT]))
    view = TopView()
    view.choose(3)
    shown = view.screenful(seen(told), 120)
    assert [[cell.strip() for cell in row] for row in shown.table.rows] == [
        ["connect-orders", "1", "1", "2", "1", "1", "match", "5"],
        ["idle", "1", "1", "0", "0", "0", "match", "5"],
    ]
    view.open(("connect-orders",))
    view.sort()
    shown = view.screenful(seen(told), 120)
    assert [[cell.strip() for cell in row] for row in shown.table.rows] == [
        ["sink-1", "-", "-", "-", "w2:8083"],
        ["sink", "w1:8083", "RUNNING", "-", "-"],
        ["sink-0", "w1:8083", "FAILED", "-", "-"],
    ]
    assert shown.about[1:] == (
        "generation 5: match, next rebalance in 4 min",
        "sink-0: two workers say that they run it",
    )
    gone = FakeSource(changed(told.state(), connect=[]))
    assert view.screenful(seen(gone), 120).about[-1] == "this Connect group is gone"
    view.choose(3)
    written = json_values(many_groups(1))
    del written["connect"]
    older = FakeSource(msgspec.convert(written, WholeView))
    assert view.screenful(seen(older), 120).about == ("no Connect group is known",)


def test_a_connect_group_that_lost_a_worker_is_shown_as_the_page_has_it() -> None:
    cluster = settled()
    cluster.group.leave("W1")
    cluster.round()
    told = FakeSource(page(cluster.state, cluster.group.now_ms))
    view = TopView()
    view.choose(3)
    shown = view.screenful(seen(told), 120)
    ((name, workers, connectors, tasks, *_),) = (
        [cell.strip() for cell in row] for row in shown.table.rows
    )
    assert (name, workers, connectors, tasks) == (cluster.name, "2", "2", "3")
    view.open(shown.table.keys[0])
    opened = view.screenful(seen(told), 120)
    assert {row[0].strip() for row in opened.table.rows} == {"A", "A-0", "A-1", "B", "B-0"}
    assert {row[2].strip() for row in opened.table.rows} == {"RUNNING"}


def test_a_table_of_each_kind_counts_what_there_is() -> None:
    found = page(everything(), NOW_MS)
    assert len(groups(found).lines) == len(found.groups)
    (line,) = applications(found).lines
    assert line.cells[:4] == (GROUP, "2", "2", "0")
    assert [line.key for line in reassignments(found).lines] == [("orders-in", 0)]


def test_a_screenful_of_a_thousand_groups_takes_a_fraction_of_the_time_between_two() -> None:
    told, view = FakeSource(many_groups()), TopView()
    began = time.process_time()
    view.screenful(seen(told), 80)
    assert time.process_time() - began < 1.0
