"""The documents as a site: every link and anchor leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.reference.pages import DIRECTORY, PAGES

ROOT = Path(__file__).resolve().parents[1]
#: What a browser loads by itself, unlike links that somebody follows.
LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=\"([^\"]+)\"")
IN_STYLES = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make site` makes; a warning, such as of a broken link, fails."""
    out = tmp_path_factory.mktemp("site")
    command = ["sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", "dirhtml"]
    folders = ["--conf-dir", ROOT / "scripts/site", "--doctree-dir", out / "doctrees"]
    made = subprocess.run(
        [sys.executable, "-m", *command, *folders, ROOT, out / "html"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return out / "html"


def test_every_document_is_in_it(site: Path) -> None:
    pages = {page.relative_to(ROOT) for page in (ROOT / "docs").rglob("*.md")}
    pages |= {
        Path(name) for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
    }
    folders = {page.with_suffix("") for page in pages if page.stem != "index"}
    assert not {folder for folder in folders if not (site / folder / "index.html").is_file()}
    assert (site / "index.html").is_file()


def test_it_asks_no_other_host_for_anything(site: Path) -> None:
    loaded = {name for page in site.rglob("*.html") for name in LOADED.findall(page.read_text())}
    assert not {name for name in loaded if re.match(r"(?:\w+:)?//", name)}
    assert not {
        name for style in site.rglob("*.css") for name in IN_STYLES.findall(style.read_text())
    }


def test_a_runbook_has_its_anchor_where_docs_url_leads(site: Path) -> None:
    rules = (ROOT / "prometheus/caughtup.rules.yml").read_text()
    anchors = set(re.findall(r"runbook: docs/operating\.md#(\S+)", rules))
    text = (site / "docs/operating/index.html").read_text()
    assert anchors
    assert not {anchor for anchor in anchors if f'id="{anchor}"' not in text}


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_what_the_code_makes(name: str) -> None:
    assert (DIRECTORY / name).read_text() == PAGES[name](), "make reference"
