"""Of what pictures are made: a digest for each set of sources, so that no picture is older than these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "pictures"
MANIFEST = PICTURES / "made_from.json"
#: What a picture may be made of: whose change can change it, and nothing beyond that.
SOURCES: dict[str, tuple[str, ...]] = {
    "page": ("agents/web/static/**/*.*", "agents/web/page/*.py", "models/shown/*.py"),
    "scenes": (
        "tests/support/pictures/played_*.py",
        "tests/support/pictures/scene*.py",
        "tests/support/pictures/shots.py",
    ),
    "commands": (
        "agents/cli/lag/*.py",
        "agents/cli/explain.py",
        "agents/cli/simulate/*.py",
        "agents/cli/top/*.py",
        "agents/cli/columns.py",
        "agents/columns.py",
    ),
    "terminal": (
        "tests/support/pictures/played_*.py",
        "tests/support/pictures/scene*.py",
        "tests/support/pictures/terminal*.py",
    ),
}


def sources_of(picture: str) -> list[str]:
    """Name the sets of sources that a picture is made of: pages are PNG, terminals are SVG."""
    return ["page", "scenes"] if picture.endswith(".png") else ["commands", "terminal"]


def digest(name: str, root: Path = ROOT) -> str:
    """Compute the digest of a set of sources: of their names and of what is in them."""
    found = hashlib.sha256()
    files = {file for pattern in SOURCES[name] for file in root.glob(pattern) if file.is_file()}
    for file in sorted(files):
        found.update(f"{file.relative_to(root)}\0".encode())
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def write(pictures: Iterable[str]) -> None:
    """Write down of what all pictures were made now."""
    told = {
        "sources": {name: digest(name) for name in SOURCES},
        "pictures": {picture: sources_of(picture) for picture in sorted(pictures)},
    }
    MANIFEST.write_text(json.dumps(told, indent=1) + "\n")
