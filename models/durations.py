"""Times, sizes and counts as text for people.

The page has the same rules in ``agents/web/static/shell/format.js``.
"""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """Return a time (s) as text with two or three digits, ``never`` if it is infinite."""
    if math.isinf(seconds):
        return "never"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


#: Up to each of these times (s), ``duration`` rounds to this many seconds; beyond, to the last.
_ROUNDED = ((10.0, 0.1), (120.0, 1.0), (7_200.0, 60.0), (math.inf, 360.0))


def same_text_seconds(seconds: float) -> float:
    """Return for how long (s) ``duration`` of a growing time stays the same, at least."""
    for limit, unit in _ROUNDED:
        if seconds < limit:
            # A half is rounded to the even number: up or down.
            return max(0.0, min(limit, (math.ceil(seconds / unit - 0.5) + 0.5) * unit) - seconds)
    return math.inf


_UNITS = ("B", "kB", "MB", "GB", "TB")


def size(value: float) -> str:
    """Return a size in bytes as text with two or three digits and a unit: ``1.2 GB``."""
    scaled, unit = float(value), 0
    while abs(scaled) >= 999.5 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    return (
        f"{scaled:.1f} {_UNITS[unit]}" if unit and scaled < 9.95 else f"{scaled:.0f} {_UNITS[unit]}"
    )


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun: ``1 offset``, ``2,000 offsets``; ``several`` is the plural."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
