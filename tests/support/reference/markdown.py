"""Text from the code as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

#: Code in backticks, which stays unchanged, or a character with a meaning in Markdown.
_OWN = re.compile(r"(`[^`]*`)|([*<])")


def escaped(text: str) -> str:
    """Return a text escaped for Markdown, on one line; code in backticks stays code."""
    line = " ".join(text.split()).replace("|", "\\|")
    return _OWN.sub(lambda found: found[1] or f"\\{found[2]}", line)


def code(text: str) -> str:
    """Return a text as code in a table's cell; an empty text stays empty."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a table, whose cells are Markdown."""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
