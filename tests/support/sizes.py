"""How much generated tests do: little each day, much in ``make thorough``."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

#: Generated scenarios of a family a day: the seeds of two days don't meet.
SCENARIOS_A_DAY = 200
THOROUGH = os.environ.get("TESTS_THOROUGH") == "1"


def daily(few: Size, many: Size) -> Size:
    """Return what a day's run takes, or what ``make thorough`` takes, which sets TESTS_THOROUGH."""
    return many if THOROUGH else few
