"""A Connect group that begins in the middle: its leader remembers what it assigned."""

from __future__ import annotations

from caughtup.models.ids import ConnectorTaskId
from caughtup.models.simulation.connect import ConnectRun
from caughtup.models.simulation.time_line import figures
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

SECOND = 1_000
OWNED = {
    "W1": ConnectorsAndTasks(("A",), (ConnectorTaskId("A", 0),)),
    "W2": ConnectorsAndTasks(("B",), (ConnectorTaskId("A", 1),)),
    "W3": ConnectorsAndTasks((), (ConnectorTaskId("B", 0),)),
}


def idle(leaves: str) -> dict[str, int]:
    """Return for how many seconds nobody ran what, when a worker leaves for good."""
    run = ConnectRun({"A": 2, "B": 1}, max_delay_ms=30 * SECOND)
    run.resume(OWNED, "W1")
    run.time.at(10 * SECOND, lambda: run.stop(leaves))
    run.time.run(100 * SECOND)
    until_ms = run.time.now_ms
    spans = run.line.spans(until_ms)
    found = figures(spans, run.line.marks, run.items, from_ms=0, until_ms=until_ms)
    return {item: round(still / SECOND) for item, still in found.still_ms.items() if still}


def test_a_leader_that_led_before_has_a_delay_before_it_gives_away_what_is_lost() -> None:
    found = idle("W2")
    assert set(found) == {"B", "A-1"}
    assert all(30 <= seconds <= 36 for seconds in found.values())


def test_a_delay_is_known_to_no_new_leader() -> None:
    found = idle("W1")
    assert {"A", "A-0"} <= set(found)
    assert all(seconds <= 6 for seconds in found.values())
