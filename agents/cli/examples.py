"""Examples in a command's help: what somebody copies before they read the rest."""

from __future__ import annotations


def examples(*commands: str) -> str:
    """Return what ends a command's help: commands to try, a line each, which are never wrapped."""
    return "\n  ".join(("\b\nExamples:", *commands))
