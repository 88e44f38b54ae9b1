"""What the documents name is there: files, folders and tests."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.support.settings import settings_from

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
#: Folders that aren't the project's own.
LEFT_BY_TOOLS = {"artifacts", "build", "dist"}
#: A path in backticks: with a slash and an end that we have, or a folder.
PATH = re.compile(r"`([\w.]+(?:/[\w.]+)*(?:\.py|\.java|\.js|\.sh|\.md|/))`")

#: A test as commands name it.
TESTS = re.compile(r"\btests/[\w/]+\.py\b")


@cache
def known() -> frozenset[str]:
    """Name every file and every folder of the project."""
    files = {
        file.relative_to(ROOT)
        for top in ROOT.iterdir()
        if top.name[0] != "." and top.name not in LEFT_BY_TOOLS
        for file in (top.rglob("*") if top.is_dir() else [top])
        if file.is_file()
    }
    folders = {parent for file in files for parent in file.parents if parent.name}
    return frozenset({str(file) for file in files} | {f"{folder}/" for folder in folders})


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_folder_that_a_page_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    named = {*PATH.findall(text), *TESTS.findall(text)}
    missing = {
        name
        for name in named
        if name not in known() and not any(file.endswith(f"/{name}") for file in known())
    }
    assert missing == set()


def test_the_settings_for_rented_clusters_are_settings() -> None:
    text = (ROOT / "docs/rented.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        settings_from(tomllib.loads(block))


def test_each_rented_product_says_whether_it_was_tried() -> None:
    text = (ROOT / "docs/rented.md").read_text()
    products = text.partition("\n## Products\n")[2].split("\n### ")[1:]
    assert products
    assert not [product for product in products if "\n\n**Not tried.**" not in product]
