"""Draw how decisions grow, as SVG: a panel for each round and one for memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from caughtup.bench.assign import growth
from caughtup.bench.figures import Figures


def svg(width: float, height: float) -> Element:
    """Return an empty drawing with a white ground."""
    drawing = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width} {height}",
            "font-family": "sans-serif",
            "font-size": "12",
        },
    )
    add(drawing, "rect", width="100%", height="100%", fill="white")
    return drawing


def written(drawing: Element) -> str:
    """Write a drawing as indented XML."""
    ElementTree.indent(drawing)
    return ElementTree.tostring(drawing, encoding="unicode") + "\n"


def line(
    panel: Element, start: tuple[float, float], end: tuple[float, float], **style: str
) -> None:
    """Draw a grey line from one point to another."""
    (x1, y1), (x2, y2) = start, end
    add(panel, "line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="#999", **style)


def text(parent: Element, x: float, y: float, words: str, **style: str) -> None:
    """Write words at a point."""
    add(parent, "text", x=x, y=y, **style).text = words


def add(parent: Element, tag: str, **attributes: str | float) -> Element:
    """Add an element; ``_`` in an attribute's name is written as ``-``."""
    named = {name.replace("_", "-"): str(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, named)


# Also distinguishable with colour blindness.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_PANEL, _HEIGHT, _MARGIN, _TOP = 300, 300, 60, 70
#: A point: the number of pairs of a task and a client, and the measured value.
_Point = tuple[float, float]


def plot(figures: Sequence[Figures]) -> str:
    """Plot the figures of ``measure_growth`` on logarithmic axes.

    The dashed line is proportional to the pairs of a task and a client.
    """
    values: dict[str, list[float]] = {
        f"CPU ms when it {name}": [one["rounds"][name]["cpu_ms"] for one in figures]
        for name in growth.ROUNDS
    }
    values["MiB at most"] = [one["peak_mib"] for one in figures]
    colours = _colours()
    drawing = svg(_PANEL * len(values) + _MARGIN, _HEIGHT + _TOP + 50)
    for number, (family, colour) in enumerate(colours.items()):
        text(drawing, _MARGIN + 220 * number, 20, f"● {family}", fill=colour)
    text(drawing, _MARGIN + 220 * len(colours), 20, "- - in proportion to the pairs", fill="#666")
    for number, (title, measured) in enumerate(values.items()):
        panel = add(drawing, "g", transform=f"translate({_MARGIN + _PANEL * number},{_TOP})")
        series: dict[str, list[_Point]] = {family: [] for family in colours}
        for one, value in zip(figures, measured, strict=True):
            series[one["family"]].append((one["pairs"], value))
        _draw(panel, title, series)
    return written(drawing)


def _draw(panel: Element, title: str, series: dict[str, list[_Point]]) -> None:
    """Draw one panel's axes, guide and series."""
    points = [point for own in series.values() for point in own]
    left, right = _decades([pairs for pairs, _ in points])
    low, high = _decades([value for _, value in points])

    def at(pairs: float, value: float) -> tuple[float, float]:
        x = (math.log10(pairs) - left) / (right - left) * (_PANEL - _MARGIN)
        y = (high - math.log10(value)) / (high - low) * _HEIGHT
        return round(x, 1), round(y, 1)

    text(panel, 0, -12, title, font_weight="bold")
    text(panel, (_PANEL - _MARGIN) / 2, _HEIGHT + 36, "tasks × clients", text_anchor="middle")
    for decade in range(left, right + 1):
        x, _ = at(10**decade, 1)
        line(panel, (x, 0), (x, _HEIGHT))
        text(panel, x, _HEIGHT + 18, f"{10**decade:,}", text_anchor="middle")
    for decade in range(low, high + 1):
        _, y = at(1, 10**decade)
        line(panel, (0, y), (_PANEL - _MARGIN, y))
        text(panel, -6, y + 4, f"{10.0**decade:,.10g}", text_anchor="end")
    # The guide starts in the corner and ends at the edge.
    rise = min(right - left, high - low)
    ends = at(10**left, 10.0**low), at(10 ** (left + rise), 10.0 ** (low + rise))
    line(panel, *ends, stroke_dasharray="4 4")
    colours = _colours()
    for family, own in series.items():
        colour = colours[family]
        places = [at(*point) for point in sorted(own)]
        points_text = " ".join(f"{x},{y}" for x, y in places)
        add(panel, "polyline", points=points_text, fill="none", stroke=colour, stroke_width=2)
        for x, y in places:
            add(panel, "circle", cx=x, cy=y, r=3.5, fill=colour)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around the values; values slightly beyond one count as equal."""
    least, most = math.log10(min(values)), math.log10(max(values))
    return math.floor(least + 0.05), max(math.ceil(most - 0.05), math.floor(least + 0.05) + 1)


def _colours() -> dict[str, str]:
    """Return the colour of each family of groups."""
    return dict(zip(growth.GROWTH, _COLOURS, strict=True))
