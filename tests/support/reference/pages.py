"""The pages of docs/reference/, by the names of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.reference.commands import commands_page
from tests.support.reference.metrics import metrics_page
from tests.support.reference.settings import settings_page

DIRECTORY = Path(__file__).parents[3] / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "metrics.md": metrics_page,
    "settings.md": settings_page,
}
