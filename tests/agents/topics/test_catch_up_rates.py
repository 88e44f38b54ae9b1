"""Records of caughtup-catch-up-rates: used while they come, refused when they are malformed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from caughtup.agents.process.turns import done_at_once
from caughtup.agents.topics.reports import catch_up_rates
from caughtup.agents.web.metrics.copies import COPY_FAMILIES
from caughtup.models.copies.catch_up_rates import WINDOWS_SECONDS, RateWindow, WindowRate
from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.shown.applications import application_view
from caughtup.models.shown.lag import copy_lines
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.positions import TaskPosition
from caughtup.pipelines.rates.slots import copy_key, partition_key, rates_value
from caughtup.pipelines.rates.state import WindowRates
from tests.support.decisions import decided_state, recommended_record
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, generation, process
from tests.support.observability.scraping import samples_of
from tests.support.own_topics.malformed import badly_keyed, malformed
from tests.support.states import cluster_state, list_ends, publish, read

COPY = CopyKey(str(process(2)), TaskId(0, 1))
KEY = copy_key(GROUP, COPY.process, str(COPY.task))
NAMES = {"group": GROUP, "process": COPY.process, "task": str(COPY.task)}
UNKNOWN = WindowRate(None, None, 0)
TRIGGER_SECONDS = 10


def written(per_second: float = 1_000.0, at_ms: int = START_MS, **names: Any) -> bytes:
    """Return a value as the job writes it: the last minute has a rate, longer windows have none."""
    minute = RateWindow(WINDOWS_SECONDS[0], WindowRate(per_second, 20.0, 6), UNKNOWN)
    longer = [RateWindow(seconds, UNKNOWN, UNKNOWN) for seconds in WINDOWS_SECONDS[1:]]
    return rates_value(names or NAMES, WindowRates(at_ms, (minute, *longer)), TRIGGER_SECONDS)


def warming() -> ClusterState:
    """An application whose warm-up was reported three times in ten seconds: a thousand a second."""
    state = decided_state(*WARMING, number=1, now_ms=START_MS + 1_000)
    for second in (1, 5, 10):
        at_ms = START_MS + second * 1_000
        list_ends(state, at_ms=at_ms)
        lag = 50_000 - 1_000 * second
        state.positions.apply(GROUP, COPY, TaskPosition("standby", lag, {}, at_ms))
        watch(state, at_ms)
    return state


def watch(state: ClusterState, now_ms: int) -> dict[str, Any]:
    """Have the copies judged, and give the warm-up's line of the lag table."""
    list(state.watch_copies(GROUP, now_ms))
    lines = [line for line in copy_lines(state, GROUP) if line.process == COPY.process]
    (found,) = (line for line in lines if line.task == str(COPY.task))
    return msgspec.to_builtins(found)


def rates(state: ClusterState, now_ms: int) -> dict[str, Any]:
    """Return what the page says of the rates of the application's copies."""
    steps = application_view(state, GROUP, state.applications[GROUP], now_ms)
    return msgspec.to_builtins(done_at_once(steps).rates)


def metrics(state: ClusterState, now_ms: int) -> dict[tuple[str, ...], float]:
    return {
        (name, *([labels["source"]] if "source" in labels else [])): value
        for name, labels, value in samples_of(COPY_FAMILIES, state, now_ms)
        if name.startswith("caughtup_catch_up_rates")
    }


def test_the_rate_of_the_job_on_spark_is_used_and_told_until_the_job_is_silent() -> None:
    state = warming()
    now_ms = START_MS + 12_000
    assert watch(state, now_ms)["rates"] == "own"
    assert rates(state, now_ms) == {"own": 1}
    assert ("caughtup_catch_up_rates_age_seconds",) not in metrics(state, now_ms)

    catch_up_rates.apply_record(state, KEY, written(2_000, now_ms), now_ms)
    line = watch(state, now_ms)
    assert line["rates"] == "spark"
    assert "measured by Spark" in line["why"]
    figures = state.watches[GROUP].copies[COPY].figures
    assert figures.rate == 2_000
    assert figures.eta is not None
    assert figures.eta.seconds == pytest.approx(13, abs=0.5)  # 40,000 - 2 s - 10,000 accepted
    assert rates(state, now_ms) == {"spark": 1}
    assert metrics(state, now_ms + 3_000) == {
        ("caughtup_catch_up_rates_copies", "spark"): 1,
        ("caughtup_catch_up_rates_copies", "own"): 0,
        ("caughtup_catch_up_rates_age_seconds",): 3,
    }

    silent_ms = now_ms + 60_000 + 3 * TRIGGER_SECONDS * 1_000 + 1
    line = watch(state, silent_ms)
    assert line["rates"] == "own"
    view = rates(state, silent_ms)
    assert view == {"own": 1, "silent_since_ms": now_ms}
    assert metrics(state, silent_ms)["caughtup_catch_up_rates_copies", "own"] == 1

    catch_up_rates.apply_record(state, KEY, written(2_000, silent_ms), silent_ms)
    assert watch(state, silent_ms)["rates"] == "spark"
    catch_up_rates.apply_record(state, KEY, None, silent_ms)
    assert watch(state, silent_ms)["rates"] == "own"


@pytest.mark.parametrize("source", ["own", "spark"])
def test_a_recommendation_says_whose_rates_it_counts_on(source: str) -> None:
    state = warming()
    now_ms = START_MS + 12_000
    if source == "spark":
        catch_up_rates.apply_record(state, KEY, written(2_000, now_ms), now_ms)
    watch(state, now_ms)
    list_ends(state, at_ms=now_ms)
    read(state, generation(2, *WARMING, at_ms=now_ms), seen_ms=now_ms)
    list_ends(state, at_ms=now_ms + 1_000)
    (record,) = publish(state, now_ms + 20_000)
    assert record["inputs"]["rates"] == source


def test_a_rate_counts_for_copies_that_are_judged_for_the_first_time() -> None:
    state = decided_state(*WARMING, number=1, now_ms=START_MS + 1_000)
    now_ms = START_MS + 40_000
    list_ends(state, at_ms=now_ms)
    catch_up_rates.apply_record(state, KEY, written(2_000, now_ms))
    assert watch(state, now_ms)["rates"] == "spark"


def test_a_recommendation_before_any_pace_is_known_names_no_rates() -> None:
    record = recommended_record(*WARMING, now_ms=START_MS + 1_000)
    assert "rates" not in record["inputs"]


def test_a_record_of_a_changelog_only_shows_that_the_job_is_up() -> None:
    state = cluster_state()
    changelog = TopicPartition("orders-counts-changelog", 1)
    value = written(topic=changelog.topic, partition=changelog.partition)
    catch_up_rates.apply_record(state, partition_key(changelog), value, START_MS + 5)
    assert state.rates.newest_ms == START_MS + 5
    assert state.rates.of(GROUP, START_MS + 5) == {}


def test_a_rate_of_the_future_is_of_when_it_was_written() -> None:
    state = cluster_state()
    catch_up_rates.apply_record(state, KEY, written(5.0, START_MS + 10**9), START_MS)
    (rate,) = state.rates.of(GROUP, START_MS).values()
    assert rate == CatchUpRate(5.0, 20.0, 60_000, START_MS)


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(written()), **fields}).encode()


def in_minute(**fields: Any) -> bytes:
    first, *others = json.loads(written())["windows"]
    return changed(windows=[{**first, **fields}, *others])


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *badly_keyed(written()),
        *malformed(KEY, written()),
        pytest.param("bad_key", KEY, changed(task="0_7"), id="of another task"),
        pytest.param("bad_type", KEY, changed(trigger_seconds=-1), id="a negative trigger"),
        pytest.param("bad_type", KEY, in_minute(seconds=0), id="a window of no time"),
        pytest.param("bad_type", KEY, in_minute(spread=-1), id="a negative spread"),
        pytest.param("bad_type", KEY, in_minute(position_per_second="fast"), id="no number"),
        pytest.param("bad_type", KEY, changed(trigger_seconds=1e308), id="beyond all numbers"),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason_and_leaves_the_last_one(
    reason: str, key: bytes | None, value: bytes
) -> None:
    state = cluster_state()
    catch_up_rates.apply_record(state, KEY, written(7.0), START_MS)
    catch_up_rates.apply_record(state, key, value, START_MS + 1)
    assert state.refused.counts == {("catch-up-rates", reason): 1}
    assert state.faults.newest() == []
    assert state.rates.newest_ms == START_MS
    assert state.rates.of(GROUP, START_MS)[COPY].per_second == 7.0
