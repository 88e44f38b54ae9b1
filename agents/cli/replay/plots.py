"""The plots of a replay, as SVG: bars for each setting, and each change over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from caughtup.models.replay.outcome import RECORDED, ReplayRow
from caughtup.models.replay.summary import Summary

# Told apart by people who see few colours, too. What was recorded is grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f")
_RECORDED_COLOUR = "#767676"
_LABELS, _BARS, _VALUES, _ROW = 330, 420, 130, 24
#: The inset keeps the dots of the first and the last change off the axis.
_WIDTH, _HEIGHT, _MARGIN, _INSET = 760, 260, 70, 40


class Measure(NamedTuple):
    """What bars are of: a title, the figure of a summary, and how it is written."""

    title: str
    value: Callable[[Summary], float]
    written: Callable[[float], str]


MEASURES = (
    Measure("Copies of state built", lambda one: one.copies_built, lambda value: f"{value:,.0f}"),
    Measure("Offsets copied", lambda one: one.offsets_copied, lambda value: f"{value:,.0f}"),
    Measure("Rebalances", lambda one: one.rebalances, lambda value: f"{value:,.0f}"),
    Measure(
        "Hours until balanced", lambda one: one.seconds / 3600, lambda value: f"{value:,.1f} h"
    ),
    Measure("Cold hand-overs", lambda one: one.cold_hand_overs, lambda value: f"{value:,.0f}"),
    Measure(
        "Imbalance of copies, tasks a thread",
        lambda one: one.copy_imbalance,
        lambda value: f"{value:,.1f}",
    ),
)


def colours(settings: Sequence[str]) -> dict[str, str]:
    """Assign every setting a colour, in their order."""
    others = [setting for setting in settings if setting != RECORDED]
    given = {setting: _COLOURS[n % len(_COLOURS)] for n, setting in enumerate(others)}
    return {RECORDED: _RECORDED_COLOUR, **given}


def bars(measure: Measure, summaries: Sequence[Summary]) -> str:
    """Draw one measure as a bar for each setting, from nothing to the greatest."""
    palette = colours([one.setting for one in summaries])
    most = max((measure.value(one) for one in summaries), default=0) or 1
    svg = _svg(_LABELS + _BARS + _VALUES, _ROW * len(summaries) + 8, measure.title)
    for number, one in enumerate(summaries):
        value, y = measure.value(one), _ROW * number + 4
        wide = round(_BARS * value / most, 1)
        _text(svg, _LABELS - 8, y + 14, _short(one.setting), text_anchor="end")
        bar = _add(
            svg, "rect", x=_LABELS, y=y, width=wide, height=_ROW - 6, fill=palette[one.setting]
        )
        _add(bar, "title").text = f"{one.setting}: {measure.written(value)}"
        _text(svg, _LABELS + wide + 6, y + 14, measure.written(value))
    return ElementTree.tostring(svg, encoding="unicode")


def timeline(rows: Sequence[ReplayRow], settings: Sequence[str]) -> str:
    """Draw how long each change of membership takes until balanced, over when it came."""
    palette = colours(settings)
    changes = [row for row in rows if row.figures is not None]
    moments = [row.as_of_ms for row in changes] or [0]
    start, end = min(moments), max(moments)
    hours = [row.figures.seconds / 3600 for row in changes if row.figures is not None]
    most = max(hours, default=0) or 1
    svg = _svg(_WIDTH + 2 * _MARGIN, _HEIGHT + 60, "Hours until balanced, by change of membership")

    def at(moment: int, value: float) -> tuple[float, float]:
        along = (moment - start) / (end - start) if end > start else 0.5
        x = _MARGIN + _INSET + (_WIDTH - 2 * _INSET) * along
        return round(x, 1), round(10 + _HEIGHT * (1 - value / most), 1)

    for quarter in range(5):
        value = most * quarter / 4
        _, y = at(start, value)
        _add(svg, "line", x1=_MARGIN, y1=y, x2=_MARGIN + _WIDTH, y2=y, stroke="#bbb")
        _text(svg, _MARGIN - 8, y + 4, f"{value:,.1f} h", text_anchor="end")
    for moment in sorted({start, end}):
        _text(svg, at(moment, 0)[0], _HEIGHT + 32, _day(moment), text_anchor="middle")
    for number, setting in enumerate(settings):
        group = _add(svg, "g", fill=palette[setting])
        for row in changes:
            if row.setting == setting and row.figures is not None:
                x, y = at(row.as_of_ms, row.figures.seconds / 3600)
                # Side by side where they would hide each other.
                x += 5 * (number - (len(settings) - 1) / 2)
                dot = _add(group, "circle", cx=x, cy=y, r=4)
                hours_text = f"{row.figures.seconds / 3600:,.2f} h"
                label = f"{row.group}, {_day(row.as_of_ms)}, {row.change}: {setting}: {hours_text}"
                _add(dot, "title").text = label
    return ElementTree.tostring(svg, encoding="unicode")


def _day(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _short(setting: str) -> str:
    return setting if len(setting) <= 52 else f"{setting[:51]}…"


def _svg(width: float, height: float, title: str) -> Element:
    svg = Element(
        "svg",
        {
            "viewBox": f"0 0 {width} {height}",
            "width": str(width),
            "role": "img",
            "aria-label": title,
            "font-family": "system-ui, sans-serif",
            "font-size": "12",
        },
    )
    _add(svg, "title").text = title
    return svg


def _text(parent: Element, x: float, y: float, words: str, **style: str) -> None:
    _add(parent, "text", x=x, y=y, fill="currentColor", **style).text = words


def _add(parent: Element, tag: str, **attributes: str | float) -> Element:
    """Add an element; an attribute's ``_`` stands for the ``-`` that it is written with."""
    written = {name.replace("_", "-"): str(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, written)
