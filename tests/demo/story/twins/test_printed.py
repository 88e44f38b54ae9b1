"""The story's last words say the figures that they are given, and no others."""

from __future__ import annotations

import io

from rich.console import Console

from caughtup.demo.story.twins.grow import Cost
from caughtup.demo.story.twins.show import punch_line, side_by_side
from tests.support.tables import cells

FOLLOWS = Cost("orders-caughtup", True, 51.2, 6, 29_389, 8, (9_000, 11_000), 6)
KAFKAS = Cost("orders-kafka", True, 89.4, 18, 95_820, 15, (60_400,), 19)


def printed(*costs: Cost) -> list[list[str]]:
    """Return the cells of the table, row by row."""
    out = io.StringIO()
    Console(file=out, width=120).print(side_by_side(costs))
    return cells(out.getvalue())


def test_both_stand_side_by_side() -> None:
    assert printed(FOLLOWS, KAFKAS) == [
        ["since the fourth instance joined", "orders-caughtup", "orders-kafka"],
        ["copies of state built", "6", "18"],
        ["copies that caughtup foretold", "6", "19"],
        ["offsets restored", "29,389", "95,820"],
        ["rebalances", "8", "15"],
        ["of these waited for", "2, 20 s", "1, 60 s"],
        ["of these for the probing interval (60 s)", "0", "1"],
        ["seconds until each instance has its share", "51", "89"],
    ]


def test_whoever_is_not_balanced_is_said_to_be_not() -> None:
    late = KAFKAS._replace(balanced=False, seconds=180.0, foretold=None)
    rows = printed(FOLLOWS, late)
    assert rows[2][2] == "–"
    assert rows[-1] == ["seconds until each instance has its share", "51", "not within 180"]
    assert "after 180 s is not balanced yet" in punch_line(FOLLOWS, late)


def test_the_punch_line_has_both_figures() -> None:
    assert punch_line(FOLLOWS, KAFKAS) == (
        "orders-caughtup built 6 copies of state in 8 rebalances: 51 s. orders-kafka built 18 copies"
        " of state in 15 rebalances: 89 s. Of that it waited 1 × 60 s for"
        " probing.rebalance.interval.ms, whose default is 10 minutes."
    )
    assert "probing" not in punch_line(FOLLOWS, KAFKAS._replace(waits_ms=(9_000,)))
    one = FOLLOWS._replace(copies=1, rebalances=1)
    assert punch_line(one, KAFKAS).startswith(
        "orders-caughtup built 1 copy of state in 1 rebalance:"
    )
