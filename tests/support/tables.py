"""Tables that rich printed, parsed."""

from __future__ import annotations

import re


def cells(printed: str) -> list[list[str]]:
    """Return the cells of a printed table, row by row, the header first."""
    return [
        [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        for line in printed.splitlines()
        if line.startswith(("│", "┃"))
    ]
