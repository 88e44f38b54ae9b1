"""``make reference``: write docs/reference/."""

from __future__ import annotations

from tests.support.reference.pages import DIRECTORY, PAGES

DIRECTORY.mkdir(exist_ok=True)
for name, make in PAGES.items():
    (DIRECTORY / name).write_text(make())
