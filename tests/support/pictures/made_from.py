"""A digest of each set of pictures' sources, which shows whether pictures are outdated."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PICTURES = ROOT / "docs" / "pictures"
MANIFEST = PICTURES / "made_from.json"
#: Each set has exactly the sources whose changes can change its pictures.
SOURCES: dict[str, tuple[str, ...]] = {
    "page": (
        "agents/web/static/**/*.*",
        "agents/web/page/*.py",
        "agents/columns.py",
        "agents/page_columns.py",
        "models/shown/*.py",
    ),
    "scenes": (
        "tests/support/pictures/played_*.py",
        "tests/support/pictures/scene*.py",
        "tests/support/pictures/shots.py",
    ),
    "commands": (
        "agents/cli/lag/*.py",
        "agents/cli/explain/*.py",
        "agents/cli/simulate/*.py",
        "agents/cli/top/*.py",
        "agents/cli/text_tables.py",
        "agents/columns.py",
        "agents/units.py",
    ),
    "terminal": (
        "tests/support/pictures/played_*.py",
        "tests/support/pictures/scene*.py",
        "tests/support/pictures/terminal*.py",
    ),
}


def sources_of(picture: str) -> list[str]:
    """Return the names of a picture's sets of sources: pages are PNG, terminals are SVG."""
    return ["page", "scenes"] if picture.endswith(".png") else ["commands", "terminal"]


def digest(name: str, root: Path = ROOT) -> str:
    """Compute the digest of a set of sources; comments and docstrings of Python do not count."""
    found = hashlib.sha256()
    files = {file for pattern in SOURCES[name] for file in root.glob(pattern) if file.is_file()}
    for file in sorted(files):
        data = file.read_bytes()
        found.update(f"{file.relative_to(root)}\0".encode())
        found.update(hashlib.sha256(_code(data) if file.suffix == ".py" else data).digest())
    return found.hexdigest()[:16]


def _code(source: bytes) -> bytes:
    """Return a module's code without comments and docstrings, which can't change a picture."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree).encode()


def write(pictures: Iterable[str]) -> None:
    """Write the present digests of all pictures' sources."""
    told = {
        "sources": {name: digest(name) for name in SOURCES},
        "pictures": {picture: sources_of(picture) for picture in sorted(pictures)},
    }
    MANIFEST.write_text(json.dumps(told, indent=1) + "\n")
