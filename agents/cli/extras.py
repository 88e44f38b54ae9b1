"""What is said where a command needs packages that this installation was made without."""

from __future__ import annotations

from caughtup.agents.errors import UserError
from caughtup.pipelines.extras import install_command


def missing_extra(extra: str, error: ImportError) -> UserError:
    """Return an error that names what is missing, and the command that installs it here."""
    return UserError(f"{error}; type: {install_command(extra)}")
