"""The report of a replay: one HTML file with its plots as SVG, which loads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from caughtup.agents.cli.replay.tables import ReplayPart, columns, notes
from caughtup.models.replay.outcome import RECORDED, ReplayRow
from caughtup.models.replay.summary import Summary

# Distinguishable with colour blindness, too; recorded values are grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f")
_RECORDED_COLOUR = "#767676"
_LABELS, _BARS, _VALUES, _ROW = 330, 420, 130, 24
#: The inset keeps the first and last dots off the axis.
_WIDTH, _HEIGHT, _MARGIN, _INSET = 760, 260, 70, 40


class Measure(NamedTuple):
    """A figure of summaries: its title, its value, and its format."""

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
    """Return a colour for each setting."""
    others = [setting for setting in settings if setting != RECORDED]
    given = {setting: _COLOURS[n % len(_COLOURS)] for n, setting in enumerate(others)}
    return {RECORDED: _RECORDED_COLOUR, **given}


def bars(measure: Measure, summaries: Sequence[Summary]) -> str:
    """Return an SVG with a bar for each setting, from 0 to the greatest value."""
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
    """Return an SVG of the hours until balanced after each change of membership, over time."""
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
                # Side by side, so that they don't hide each other.
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
    """Add an element; ``_`` in an attribute's name becomes ``-``."""
    written = {name.replace("_", "-"): str(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, written)


#: More dots hide each other, and make a page of megabytes.
_MOST_DOTS = 2_000
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #8886; text-align: right; }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.recorded td { font-style: italic; }
svg { max-width: 100%; height: auto; display: block; }
figure { margin: 1.5rem 0; }
figure, div { overflow-x: auto; }
figcaption { font-weight: 600; }
p.note { color: #767676; margin: .3rem 0; }
"""


def report(source: str, parts: Sequence[ReplayPart]) -> str:
    """Return the page. ``source`` is the URI of the recorded generations."""
    body = "\n".join(line for part in parts for line in _section(part))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>caughtup replay</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>What other settings would have done</h1>
<p>Recorded generations of {escape(source)}, decided again.</p>
{body}
</body>
</html>
"""


def _section(part: ReplayPart) -> Iterator[str]:
    groups = len({row.group for row in part.rows})
    yield f"<section><h2>{escape(part.group) if part.group else f'{groups:,} groups'}</h2>"
    shown = columns(part)
    yield "<div><table><thead><tr><th>setting</th>"
    yield "".join(f"<th>{escape(name)}</th>" for name in shown) + "</tr></thead><tbody>"
    for one in part.summaries:
        cells = "".join(f"<td>{escape(written(one))}</td>" for written in shown.values())
        kind = ' class="recorded"' if one.recorded else ""
        yield f"<tr{kind}><td>{escape(one.setting)}</td>{cells}</tr>"
    yield "</tbody></table></div>"
    yield from (f'<p class="note">{escape(note)}</p>' for note in notes(part))
    for measure in MEASURES:
        yield _figure(measure.title, bars(measure, part.summaries))
    dots = sum(row.figures is not None for row in part.rows)
    if 0 < dots <= _MOST_DOTS:
        settings = [one.setting for one in part.summaries]
        yield _figure(
            "Each change of membership, in the colours above", timeline(part.rows, settings)
        )
    yield "</section>"


def _figure(title: str, svg: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{svg}</figure>"
