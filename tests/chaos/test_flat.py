from __future__ import annotations

import os
from random import Random
from xml.etree import ElementTree

import pytest

from tests.chaos.flat import MEASURES, judged, slope
from tests.chaos.soak import process_figures
from tests.chaos.soak_plot import plot

Samples = list[dict[str, float]]


def samples(minutes: int, **growing: float) -> Samples:
    """Samples each 5 s of figures around 100; ``growing``: a column and its growth a minute."""
    random = Random(5)
    made = []
    for number in range(minutes * 12):
        seconds = 5.0 * number
        one = {"seconds": seconds}
        for measure in MEASURES:
            grown = growing.get(measure.column, 0.0) * seconds / 60
            one[measure.column] = 100 + grown + random.uniform(-0.5, 0.5)
        made.append(one)
    return made


def grown(found: Samples) -> set[str]:
    return {one.measure.column for one in judged(found) if not one.is_flat}


def test_what_stays_is_flat() -> None:
    assert grown(samples(60)) == set()


@pytest.mark.parametrize("column", [measure.column for measure in MEASURES])
def test_what_grows_by_some_each_minute_is_not(column: str) -> None:
    assert grown(samples(60, **{column: 2.5})) == {column}


def test_what_grows_in_the_first_ten_minutes_only_is_flat() -> None:
    found = samples(60)
    for one in found[: 10 * 12]:
        one["rss_mib"] -= 50 * (1 - one["seconds"] / 600)
    assert grown(found) == set()


def test_a_few_spikes_are_no_growth() -> None:
    found = samples(60)
    for number in range(600, 720, 20):
        found[number]["longest_turn_ms"] = 5_000
    assert grown(found) == set()


def test_a_slope_is_by_the_second() -> None:
    assert slope([0, 5, 10, 15], [1, 11, 21, 31]) == pytest.approx(2)
    assert slope([3], [1]) == 0
    assert judged([]) == []


def test_the_plot_has_a_line_for_each_figure() -> None:
    root = ElementTree.fromstring(plot(samples(2)))
    lines = root.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(MEASURES)
    assert all(len(one.get("points", "").split()) == 24 for one in lines)


def test_figures_of_a_process_are_read() -> None:
    found = process_figures(os.getpid())
    assert found["rss_mib"] > 10
    assert found["handles"] >= 3
    assert found["threads"] >= 1
