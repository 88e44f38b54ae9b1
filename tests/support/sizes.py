"""The amount of generated tests: few each day, many in ``make thorough``."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

#: The number of a family's scenarios a day, which keeps the seeds of different days apart.
SCENARIOS_A_DAY = 400
THOROUGH = os.environ.get("TESTS_THOROUGH") == "1"


def daily(few: Size, many: Size) -> Size:
    """Return ``few``, or ``many`` in ``make thorough``, which sets TESTS_THOROUGH."""
    return many if THOROUGH else few
