"""Puts what `caughtup files` writes into the wheel: rules, dashboards, docs, the follower's jar.

Hatchling runs this when it builds the wheel. Which files these are stands in pyproject.toml; the jar
is the one that the variable FOLLOWER_JAR names, as `make wheel` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SHARE = "caughtup/share"


class SharedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the files to a wheel, and nothing to an editable one, which has the checkout's."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each file under its name. Raises FileNotFoundError for one that isn't there."""
        if version == "editable":
            return
        wanted = {name: Path(self.root, name) for name in self.config["share"]}
        if jar := os.environ.get("FOLLOWER_JAR"):
            wanted["caughtup-follower.jar"] = Path(jar)
        for name, path in wanted.items():
            if not path.exists():
                raise FileNotFoundError(f"{path} is to be in the wheel, and isn't there")
            build_data["force_include"][str(path)] = f"{_SHARE}/{name}"
