"""What to type when a command needs packages that this installation was made without."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from caughtup.agents.errors import UserError


def missing_extra(extra: str, error: ImportError) -> UserError:
    """Return an error that names what is missing, and the command that installs it here."""
    return UserError(f"{error}; type: {install_command(extra)}")


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
