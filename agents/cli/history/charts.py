"""A group's lag and rates over days, with its rebalances, as JSON for the page.

The service runs this module in a process of its own, which frees its memory and can be killed.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, SupportsFloat

import msgspec

from caughtup.agents.cli.history.questions import CLIENTS
from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError
from caughtup.models.rebalances.rebalance import Cause, GroupRebalance
from caughtup.models.recent.happenings import Happening, rebalanced
from caughtup.models.records.fields import or_absent

if TYPE_CHECKING:
    from caughtup.agents.cli.history.tables import History, Row

#: Samples of a chart, the most rebalances on it, and the limit of CPU time in seconds.
SAMPLES, _MARKS, _CPU_SECONDS = 240, 200, 60
_DAYS = "date BETWEEN CAST($since AS DATE) AND CAST($until AS DATE)"

#: As in the question lag, a row is valid until the next one of its partition.
_FIGURES = f"""
WITH moments AS (
    SELECT unnest(generate_series($since, $until, ($until - $since) / {SAMPLES})) AS moment
), changes AS (
    SELECT as_of AS moment, topic, partition, lag, committed, end_offset FROM lag
    WHERE {_DAYS.replace("$since", "($since - INTERVAL 7 DAY)")} AND "group" = $group
), partitions AS (SELECT DISTINCT topic, partition FROM changes)
SELECT epoch_ms(moment), sum(lag), count(committed), sum(committed), count(end_offset), sum(end_offset)
FROM (SELECT moment, topic, partition FROM moments CROSS JOIN partitions) AS asked
ASOF LEFT JOIN changes USING (topic, partition, moment)
GROUP BY moment ORDER BY moment LIMIT {SAMPLES + 1}
"""
_REBALANCES = f"""
SELECT epoch_ms(as_of), generation, after, members, causes
FROM rebalances
WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND "group" = $group AND error IS NULL
ORDER BY as_of DESC, log_offset DESC LIMIT {_MARKS}
"""
#: What releases without the table of rebalances have written: Kafka Streams groups on the classic protocol.
_GENERATIONS = f"""
WITH generations AS (
    SELECT as_of, generation, {CLIENTS} AS clients
    FROM group_generations
    WHERE {_DAYS} AND as_of BETWEEN $since AND $until AND "group" = $group
), changes AS (
    SELECT *, lag(clients) OVER (ORDER BY generation, as_of) AS before FROM generations
)
SELECT epoch_ms(as_of), generation,
       list_sort(list_filter(clients, lambda c: NOT list_contains(before, c)))[:5],
       list_sort(list_filter(before, lambda c: NOT list_contains(clients, c)))[:5]
FROM changes ORDER BY as_of DESC LIMIT {_MARKS}
"""


def charts(uri: str, group: str, since: datetime, until: datetime) -> dict[str, object]:
    """Return the charts of a group between two times.

    Raises UserError if the tables can't be read.
    """
    from caughtup.agents.cli.history.tables import History
    from caughtup.pipelines.delta.store import store_of

    tables = History(store_of(uri))
    parameters = {"since": since, "until": until, "group": group}
    rows = list(tables.ask(_FIGURES, parameters).rows)
    return {
        "now_ms": round(until.timestamp() * 1000),
        "at_ms": [row[0] for row in rows],
        "series": series(rows),
        "marks": _marks(tables, group, parameters),
    }


def _marks(tables: History, group: str, parameters: Mapping[str, object]) -> list[Happening]:
    """Return a group's rebalances, the oldest first, and before them what an earlier release has written."""
    found: list[list[Happening]] = []
    for query, mark in ((_REBALANCES, partial(_rebalance, group)), (_GENERATIONS, _mark)):
        try:
            found.append([mark(*row) for row in reversed(list(tables.ask(query, parameters).rows))])
        except UserError:  # an old history, or one of small tables, lacks one of them
            found.append([])
    rebalances, generations = found
    if rebalances:
        generations = [one for one in generations if one.at_ms < rebalances[0].at_ms]
    return [*generations, *rebalances][-_MARKS:]


def _rebalance(
    group: str,
    at_ms: int,
    generation: int,
    after: int | None,
    members: int,
    causes: Sequence[Mapping[str, str | None]] | None,
) -> Happening:
    """Return a rebalance's mark: its causes, how sure the first is, and the evidence for it."""
    if not causes:
        return Happening(at_ms, "rebalance", f"generation {generation}")
    fields = [{name: v for name, v in cause.items() if v is not None} for cause in causes]
    read = [msgspec.convert(cause, Cause) for cause in fields]
    rebalance = GroupRebalance(
        generation=generation, causes=read, members=members, after=or_absent(after)
    )
    happened = rebalanced(group, rebalance, at_ms)
    sure = rebalance.cause.sure
    text = happened.text if sure == "certain" else f"{happened.text} ({sure})"
    return Happening(at_ms, "rebalance", text, happened.why)


def series(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """Return lag and rates over time; a rate needs the same partitions at both samples."""
    found: dict[str, list[float | None]] = {
        "lag": [_number(row[1]) for row in rows],
        "produced_per_second": _rates(rows, 4),
        "committed_per_second": _rates(rows, 2),
    }
    return {name: known for name, known in found.items() if any(one is not None for one in known)}


def _rates(rows: Sequence[Row], count: int) -> list[float | None]:
    """Return the growth of a sum, records a second; ``count`` is the column of its partitions."""
    found: list[float | None] = [None] * min(1, len(rows))
    for before, now in pairwise(rows):
        seconds = (now[0] - before[0]) / 1000
        same = before[count] == now[count] > 0 and seconds > 0
        grown = float(now[count + 1] - before[count + 1]) if same else 0.0
        found.append(max(0.0, grown) / seconds if same else None)
    return found


def _number(value: SupportsFloat | None) -> float | None:
    return None if value is None else float(value)


def _mark(at_ms: int, generation: int, joined: Iterable[str], left: Iterable[str]) -> Happening:
    causes = [
        f"{', '.join(names)} {what}"
        for names, what in ((list(joined or ()), "joined"), (list(left or ()), "left"))
        if names
    ]
    return Happening(at_ms, "rebalance", f"generation {generation}", ", ".join(causes) or None)


def main(arguments: Sequence[str]) -> None:
    """Print the charts for URI GROUP DAYS NOW_MS; exit with 1 and a line if they can't be read."""
    uri, group, days, now_ms = arguments
    with suppress(OSError, ValueError):  # systemd's filter refuses it, or the limit is lower
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    until = datetime.fromtimestamp(int(now_ms) / 1000, UTC)
    try:
        found = charts(uri, group, until - timedelta(days=int(days)), until)
    except ImportError as error:
        from caughtup.agents.cli.commands import missing_extra

        sys.exit(missing_extra("history", error).message)
    except (UserError, CaughtupError) as error:
        sys.exit(error.message)
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main(sys.argv[1:])
