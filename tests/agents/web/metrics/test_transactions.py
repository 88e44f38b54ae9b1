"""Metrics of open transactions: few series, whatever ids clients choose."""

from __future__ import annotations

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics import exposition
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import ABSENT, changed
from tests.support.groups.records import START_MS
from tests.support.observability.scraping import Labels, scrape
from tests.support.states import HOSTILE, cluster_state, everything, open_transaction

NOW_MS = START_MS + 10_000
HELD = [TopicPartition("clicks", 0), TopicPartition("clicks", 1)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "now_ms", lambda: NOW_MS)


def scraped(*transactions: object) -> dict[str, dict[Labels, float]]:
    state = cluster_state()
    state.transactions.apply(transactions, NOW_MS)  # type: ignore[arg-type]
    return scrape(state, Health(ready=True, reader_lag=0))


def test_an_open_transaction_has_its_age_under_its_whole_name() -> None:
    found = scrape(everything(), Health(ready=True, reader_lag=0))
    assert found["caughtup_transaction_open_seconds"] == {("4000", HOSTILE): 70}
    assert found["caughtup_transactions_open"] == {(): 1}
    assert found["caughtup_transactions_hanging"] == {(): 0}
    assert found["caughtup_transaction_held_partitions"] == {(): 2}
    assert found["caughtup_transaction_blocked_groups"] == {(): 0}
    assert found["caughtup_transactions_partial"] == {(): 0}


def test_of_a_thousand_the_oldest_ten_have_series_and_long_ids_are_cut() -> None:
    many = [
        changed(
            open_transaction("x" * 1_000, HELD),
            producer_id=number,
            hanging=number < 3,
            started_at_ms=ABSENT,
            last_write_ms=START_MS - number,
        )
        for number in range(1_000)
    ]
    found = scraped(*many)
    ages = found["caughtup_transaction_open_seconds"]
    assert len(ages) == 10
    assert {len(transactional_id) for _, transactional_id in ages} == {200}
    assert found["caughtup_transactions_open"] == {(): 1_000}
    assert found["caughtup_transactions_hanging"] == {(): 3}


def test_before_the_first_look_nothing_is_known() -> None:
    found = scrape(cluster_state(), Health(ready=True, reader_lag=0))
    assert "caughtup_transactions_open" not in found
