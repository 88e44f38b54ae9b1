"""Twenty incidents that one service sees in the log and another by asking: the same verdicts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.source_incidents import ASK_SECONDS, INCIDENTS, Seen, staged, topics
from tests.support.service import Service

pytestmark = pytest.mark.thorough

#: How late a verdict may be shown for other reasons: a round of assessments, a busy machine.
_SLACK_SECONDS = 8.0
_INTERVALS_MORE = 3


def test_verdicts_are_the_same_and_not_much_later(shared_cluster: EmbeddedCluster) -> None:
    found: dict[str, Seen | str] = {}
    with (
        Service(shared_cluster, source="log") as reads,
        Service(shared_cluster, source="ask", ask_interval=ASK_SECONDS) as asks,
        topics(shared_cluster, len(INCIDENTS)) as names,
        ThreadPoolExecutor(len(INCIDENTS)) as pool,
    ):
        running = {
            one.name: pool.submit(staged, one, shared_cluster, topic, reads, asks)
            for one, topic in zip(INCIDENTS, names, strict=True)
        }
        for name, future in running.items():
            try:
                found[name] = future.result()
            except Exception as error:  # noqa: BLE001 - all are shown
                found[name] = repr(error)
    late = []
    for one in INCIDENTS:
        seen = found[one.name]
        print(f"{one.name:40} {one.reads:10} {one.asks:10} {seen}")
        allowed = ASK_SECONDS * (1 + _INTERVALS_MORE * one.slowly) + _SLACK_SECONDS
        if isinstance(seen, str) or seen.asks > seen.reads + allowed:
            late.append((one.name, seen))
    assert not late
