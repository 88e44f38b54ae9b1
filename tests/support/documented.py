"""Programs and examples as they stand in the documents."""

from __future__ import annotations

import re
from pathlib import Path

INTEGRATING = Path(__file__).resolve().parents[2] / "docs" / "integrating.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, page: Path = INTEGRATING) -> list[str]:
    """Return the blocks of a language, in the page's order."""
    return [text for kind, text in _BLOCK.findall(page.read_text()) if kind == language]
