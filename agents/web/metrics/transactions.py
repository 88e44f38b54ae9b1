"""Metrics of open transactions that hold something back; few series, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.records.fields import or_none
from caughtup.models.records.transactions import OpenTransaction

#: The oldest transactions, each of which has a series, and the most characters of an id.
_OLDEST, _MOST_CHARACTERS = 10, 200
_CLUSTER = ("cluster",)


def _ages(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    """Yield the age of the oldest: since their start or, where that isn't known, their last write."""
    state = scrape.state
    for transaction in state.transactions.transactions[:_OLDEST]:
        started = or_none(transaction.started_at_ms)
        since = or_none(transaction.last_write_ms) if started is None else started
        if since is None:
            continue
        name = (or_none(transaction.transactional_id) or "")[:_MOST_CHARACTERS]
        values = (state.cluster, name, str(transaction.producer_id))
        yield family.line(values, max(0, scrape.now_ms - since) / 1000)


def _count(
    figure: Callable[[Sequence[OpenTransaction]], int], family: Family, scrape: Scrape, _: None
) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), figure(scrape.state.transactions.transactions))


def _blocked_groups(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), len(scrape.state.assessments.blocked))


def _partial(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    missing = scrape.state.transactions.missing
    yield family.line((scrape.state.cluster,), bool(missing.reasons or missing.partitions))


def _observed(scrape: Scrape) -> bool:
    return scrape.state.transactions.observed_ms is not None


TRANSACTION_FAMILIES = (
    Family(
        "caughtup_transaction_open_seconds",
        "Age of the oldest transactions that hold back a last stable offset",
        (*_CLUSTER, "transactional_id", "producer_id"),
        _ages,
        known=_observed,
    ),
    Family(
        "caughtup_transactions_open",
        "Open transactions that hold back a last stable offset which stands still",
        _CLUSTER,
        partial(_count, len),
        known=_observed,
    ),
    Family(
        "caughtup_transactions_hanging",
        "Open transactions that no coordinator will ever end",
        _CLUSTER,
        partial(_count, lambda found: sum(one.hanging for one in found)),
        known=_observed,
    ),
    Family(
        "caughtup_transaction_held_partitions",
        "Partitions whose last stable offset stands still, held back by an open transaction",
        _CLUSTER,
        partial(_count, lambda found: sum(len(one.partitions) for one in found)),
        known=_observed,
    ),
    Family(
        "caughtup_transaction_blocked_groups",
        "Groups that wait at a last stable offset which stands still",
        _CLUSTER,
        _blocked_groups,
    ),
    Family(
        "caughtup_transactions_partial",
        "1 if the last look at open transactions was incomplete",
        _CLUSTER,
        _partial,
        known=_observed,
    ),
)
