"""The page of a replay: whole in itself, and drawn to scale."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

from caughtup.agents.cli.replay.report import MEASURES, bars, report, timeline
from caughtup.agents.cli.replay.tables import (
    COLUMNS,
    ReplayPart,
    columns,
    lines,
    notes,
    parts,
    table,
)
from caughtup.bench.movement.changes import Change, Variety
from caughtup.bench.replay.histories import generated_history
from caughtup.models.replay.outcome import RECORDED, replay_group
from caughtup.models.replay.settings import ReplaySetting, replay_settings

SETTINGS: list[ReplaySetting | None] = [
    None,
    *replay_settings(["max.warmup.replicas=4"], ["high_availability", "minimal_movement"]),
]
NAMES = [RECORDED, *map(str, SETTINGS[1:])]


def part(group: str = "orders", *, broken: bool = False) -> ReplayPart:
    variety = Variety(standbys=0, unequal=False, tags=False, racks=False)
    history = generated_history(group, Change(2, 3, 12), variety, 1)
    if broken:
        history[-1] = replace(history[-1], scenario={}, doubts=("its end",))
    (found,) = parts(list(replay_group(history, SETTINGS)), SETTINGS, by_group=True)
    return found


class Page(HTMLParser):
    """Notes every tag with its attributes, and every text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    text = report("<script>alert(1)</script>", [part("<img src=x onerror=alert(1)>")])
    page = Page(text)
    names = {name for name, _ in page.tags}
    assert names.isdisjoint({"script", "img", "link", "iframe", "object", "image", "use"})
    attributes = {name for _, given in page.tags for name in given}
    assert attributes.isdisjoint({"src", "href", "xlink:href", "onerror", "onload", "style"})
    assert not re.search(r"https?:|url\(|@import", text)
    assert "<img src=x onerror=alert(1)>" in page.texts


def test_the_page_has_every_setting_with_its_figures_and_a_plot_of_each_measure() -> None:
    found = part()
    page = Page(report("the table", [found]))
    assert [tag for tag, _ in page.tags].count("svg") == len(MEASURES) + 1
    assert [tag for tag, _ in page.tags].count("tr") == 1 + len(SETTINGS)
    for one in found.summaries:
        assert one.setting in page.texts
        for written in COLUMNS.values():
            assert written(one) in page.texts
    assert [one.setting for one in found.summaries] == NAMES


def test_a_bar_is_as_long_as_its_figure() -> None:
    found = part()
    for measure in MEASURES:
        drawn = ElementTree.fromstring(bars(measure, found.summaries))
        widths = [float(bar.attrib["width"]) for bar in drawn.iter("rect")]
        values = [measure.value(one) for one in found.summaries]
        longest = max(values) or 1
        assert len(widths) == len(values)
        for width, value in zip(widths, values, strict=True):
            assert abs(width / 420 - value / longest) < 0.001


def test_a_change_is_a_dot_as_high_as_its_hours() -> None:
    found = part()
    drawn = ElementTree.fromstring(timeline(found.rows, NAMES))
    dots = {dot[0].text: float(dot.attrib["cy"]) for dot in drawn.iter("circle")}
    assert len(dots) == len(SETTINGS)
    hours = {name: float((name or "").rpartition(": ")[2].removesuffix(" h")) for name in dots}
    ordered = sorted(dots, key=lambda name: dots[name], reverse=True)
    assert [hours[name] for name in ordered] == sorted(hours.values())
    assert min(dots.values()) == 10, "the longest is at the top"


def test_bytes_are_told_where_somebody_says_what_an_offset_weighs_and_only_there() -> None:
    plain = part()
    assert "bytes copied" not in columns(plain)
    assert all("bytes_copied" not in line for line in lines(plain))
    assert "Bytes" not in " ".join(notes(plain))
    weighed = plain._replace(bytes_per_offset=120)
    for one, line in zip(weighed.summaries, lines(weighed), strict=True):
        assert line["bytes_copied"] == 120 * one.offsets_copied > 0
        assert line["bytes_per_offset"] == 120
    assert "offsets times --bytes-per-offset, 120" in " ".join(notes(weighed))
    assert [column.header for column in table(weighed).columns][3:5] == [
        "offsets copied",
        "bytes copied",
    ]
    first, *_ = weighed.summaries
    known = replace(first, offsets_copied=5_000_000)
    written = columns(weighed)["bytes copied"]
    assert written(known) == "about 600 MB"
    assert written(replace(known, offsets_unknown=1)) == "≥ about 600 MB"
    assert written(replace(known, changes=0)) == ""
    page = Page(report("the table", [weighed]))
    assert "bytes copied" in page.texts
    assert written(first) in page.texts


def test_what_is_not_certain_is_said() -> None:
    said = " ".join(notes(part(broken=True)))
    assert "1 generation could not be decided, such as orders generation" in said
    assert "missing_field: tasks: is missing" in said
    certain = " ".join(notes(part()))
    assert "could not be decided" not in certain
    assert "every copy counts as caught up by the next rebalance" in certain
