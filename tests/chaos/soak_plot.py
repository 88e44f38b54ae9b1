"""Draws what a soak sampled, as SVG: a panel for each figure over time."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from caughtup.bench.assign.plot import add, line, svg, text, written
from tests.chaos.flat import MEASURES, Measure

_WIDTH, _HEIGHT, _MARGIN, _TOP = 760, 120, 70, 40
_COLOUR = "#0072b2"


def plot(samples: Sequence[dict[str, float]]) -> str:
    """Draw every figure from 0 to its greatest, over the minutes."""
    drawing = svg(_WIDTH + 2 * _MARGIN, len(MEASURES) * (_HEIGHT + _TOP) + 50)
    for number, measure in enumerate(MEASURES):
        at = f"translate({_MARGIN},{_TOP + number * (_HEIGHT + _TOP)})"
        _draw(add(drawing, "g", transform=at), measure, samples)
    text(drawing, _MARGIN + _WIDTH / 2, len(MEASURES) * (_HEIGHT + _TOP) + 40, "minutes")
    return written(drawing)


def _draw(panel: Element, measure: Measure, samples: Sequence[dict[str, float]]) -> None:
    end = max((one["seconds"] for one in samples), default=0) or 1
    most = max((one[measure.column] for one in samples), default=0) or 1
    text(panel, 0, -10, measure.title, font_weight="bold")
    for share in (0, 0.5, 1):
        y = round(_HEIGHT * (1 - share), 1)
        line(panel, (0, y), (_WIDTH, y))
        text(panel, -6, y + 4, f"{share * most:,.0f}", text_anchor="end")
        text(panel, _WIDTH * share, _HEIGHT + 16, f"{share * end / 60:,.1f}", text_anchor="middle")
    points = " ".join(
        f"{one['seconds'] / end * _WIDTH:.1f},{_HEIGHT * (1 - one[measure.column] / most):.1f}"
        for one in samples
    )
    add(panel, "polyline", points=points, fill="none", stroke=_COLOUR, stroke_width=1.5)
