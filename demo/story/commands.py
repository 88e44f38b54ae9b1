"""The commands that users can try while they watch the demo."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def program(called_as: str, executable: str = sys.executable) -> str:
    """Return the shell command for caughtup; ``called_as`` is this program's ``sys.argv[0]``."""
    if Path(called_as).name == "caughtup":
        return shlex.quote(called_as)
    return f"{shlex.quote(executable)} -m caughtup.agents"


def to_try(caughtup: str, bootstrap_servers: str, url: str, application: str) -> tuple[str, ...]:
    """Return the commands, a line each: for the cluster, and for the service at ``url``."""
    service = url.rstrip("/")
    return (
        f"{caughtup} lag --bootstrap-server {bootstrap_servers}",
        f"{caughtup} lag --service {service} {application}",
        f"{caughtup} top --service {service}",
        f"{caughtup} explain --bootstrap-server {bootstrap_servers} {application}",
        f"{caughtup} reassignments --service {service} --watch",
    )


def to_compare(
    caughtup: str, bootstrap_servers: str, url: str, follows: str, kafkas: str
) -> tuple[str, ...]:
    """Return the commands for the story of two applications, of which one follows."""
    service = url.rstrip("/")
    cluster = f"--bootstrap-server {bootstrap_servers}"
    beside = "--assignor high_availability --assignor minimal_movement"
    return (
        f"{caughtup} lag {cluster}",
        f"{caughtup} lag --service {service} {follows}",
        f"{caughtup} simulate {cluster} {kafkas} --add 1 --restore-rate 20000 {beside}",
        f"{caughtup} explain {cluster} {kafkas}",
        f"{caughtup} top --service {service}",
    )
