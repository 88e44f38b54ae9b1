"""Puts the files of `caughtup files` into the wheel: rules, dashboards, docs, the follower's jar.

Hatchling runs this when it builds the wheel. pyproject.toml lists the files; the jar's path is in
the variable FOLLOWER_JAR, as set by `make wheel`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SHARE = "caughtup/share"


class SharedFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the files to a wheel, except to an editable one, which uses the checkout's."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each file under its name. Raises FileNotFoundError for a missing one."""
        if version == "editable":
            return
        wanted = {name: Path(self.root, name) for name in self.config["share"]}
        if jar := os.environ.get("FOLLOWER_JAR"):
            wanted["caughtup-follower.jar"] = Path(jar)
        for name, path in wanted.items():
            if not path.exists():
                raise FileNotFoundError(f"{path} is to be in the wheel, and isn't there")
            build_data["force_include"][str(path)] = f"{_SHARE}/{name}"
