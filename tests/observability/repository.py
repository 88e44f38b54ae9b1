"""Where the files are that operators use, and what the service really exposes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from caughtup.agents.web.metrics.exposition import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "prometheus" / "caughtup.rules.yml"
DASHBOARDS = ROOT / "grafana" / "dashboards"
OVERVIEW = DASHBOARDS / "caughtup.json"
OPERATING = ROOT / "docs" / "operating.md"
METRICS = ROOT / "docs" / "reference" / "metrics.md"

_METRIC = re.compile(r"\bcaughtup_[a-z0-9_]+\b")


def read_yaml(path: Path) -> Any:
    """Read a YAML file as plain dicts and lists."""
    return YAML(typ="safe", pure=True).load(path.read_text())


def exposed_metrics() -> dict[str, tuple[str, ...]]:
    """Return the labels of every metric of /metrics, by the name that a query uses."""
    return {family.name: family.labels for family in FAMILIES}


def metrics_named_in(expression: str) -> set[str]:
    """Find the names of our metrics in an expression."""
    return set(_METRIC.findall(expression))


def promtool(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool on arguments, and on a text; fails, saying what to install, where there is none."""
    program = shutil.which("promtool")
    assert program, "promtool is missing: apt-get install --no-install-recommends prometheus"
    return subprocess.run(
        [program, *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
