"""The command that installs the packages of an extra into an existing environment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def install_command(extra: str, environment: Path | None = None) -> str:
    """Return the command that installs an extra into an environment, by default the running one.

    Environments of pipx and uv are recognized by a file in them; those of uv have no pip.
    """
    made = environment or Path(sys.prefix)
    wanted = f"'caughtup[{extra}]'"
    if (made / "pipx_metadata.json").exists():
        return f"pipx runpip {made.name} install {wanted}"
    if (made / "uv-receipt.toml").exists():
        return f"uv pip install --python {shlex.quote(str(made))} {wanted}"
    return f"pip install {wanted}"
