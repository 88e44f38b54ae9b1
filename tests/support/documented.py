"""Programs and examples from the documents."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTEGRATING = ROOT / "docs" / "integrating.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, page: Path | str = INTEGRATING) -> list[str]:
    """Return the code blocks of a language in a page or a page's text, in order."""
    text = page.read_text() if isinstance(page, Path) else page
    return [block for kind, block in _BLOCK.findall(text) if kind == language]
