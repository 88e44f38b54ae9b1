"""The configuration of `make site`: Sphinx makes a site of the same Markdown files.

The source folder is the whole repository, so that links between documents, and to files, work as in
a checkout. The site requests nothing from other hosts.
"""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
#: A picture with a dark variant, as written for readers of the Markdown.
_PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>'
)
_VERSION = re.search(r'__version__ = "(.*)"', (_ROOT / "caughtup/__init__.py").read_text())

project = "caughtup"
author = "the caughtup developers"
release = _VERSION[1] if _VERSION else ""
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "followers/kafka_streams/README.md"]
exclude_patterns = [
    ".*", "agents", "artifacts", "bench", "build", "caughtup", "charts", "demo", "deploy", "dist",
    "followers/python", "grafana", "models", "pipelines", "prometheus", "scripts", "tests",
    "docs/topics",
]  # fmt: skip

myst_heading_anchors = 4
#: Words in pipes and words with colons are text, not roles.
myst_enable_extensions: list[str] = []
# JSON with … and the like is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"caughtup {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}


def _show_pictures(app: object, document: str, content: list[str]) -> None:
    """Show a picture's light or dark variant by the theme's own switch."""
    image = "```{image} %s\n:alt: %s\n:class: only-%s\n```"
    content[0] = _PICTURE.sub(
        lambda found: "\n\n".join(
            (image % (found[3], found[2], "light"), image % (found[1], found[2], "dark"))
        ),
        content[0],
    )


def setup(app: object) -> None:
    """Register ``_show_pictures`` for every document."""
    app.connect("source-read", _show_pictures)  # type: ignore[attr-defined]
