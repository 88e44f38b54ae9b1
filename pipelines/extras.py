"""What installs the packages of an extra, into an environment that was made without them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def install_command(extra: str, environment: Path | None = None) -> str:
    """Return what installs an extra into an environment, by default the one that runs this.

    pipx and uv leave a file in the environments that they made, and uv's have no pip.
    """
    made = environment or Path(sys.prefix)
    wanted = f"'caughtup[{extra}]'"
    if (made / "pipx_metadata.json").exists():
        return f"pipx runpip {made.name} install {wanted}"
    if (made / "uv-receipt.toml").exists():
        return f"uv pip install --python {shlex.quote(str(made))} {wanted}"
    return f"pip install {wanted}"
