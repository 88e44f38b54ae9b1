"""Helpers for drawing SVG."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element


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
