"""Spans of time in words that a person reads."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """Write a span of time (s) with two or three digits; an endless one is ``never``."""
    if math.isinf(seconds):
        return "never"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"
