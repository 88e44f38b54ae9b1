"""Tables that rich printed, read back."""

from __future__ import annotations

import re


def cells(printed: str) -> list[list[str]]:
    """Return the cells of the table in a text, row by row, its head first."""
    return [
        [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        for line in printed.splitlines()
        if line.startswith(("│", "┃"))
    ]
