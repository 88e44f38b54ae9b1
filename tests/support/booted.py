"""Debian with systemd as its first process, in namespaces of its own but for the network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from caughtup.demo.processes.children import Process, Processes
from tests.support.service import wait_for

_PACKAGES = ("systemd", "systemd-sysv", "dbus")


def missing() -> str | None:
    """Return why no machine can be booted here; None if one can."""
    if os.geteuid() != 0:
        return "booting a machine in namespaces needs root"
    return None if shutil.which("systemd-nspawn") else "there is no systemd-nspawn"


def bootable(debian: Path, tree: Path) -> None:
    """Copy a Debian without systemd, and install it there from Debian's packages."""
    subprocess.run(["cp", "-a", debian, tree], check=True)
    shutil.copy("/etc/resolv.conf", tree / "etc/resolv.conf")
    installing = (
        f"apt-get update && apt-get install -y --no-install-recommends {' '.join(_PACKAGES)}"
    )
    done = subprocess.run(
        ["chroot", tree, "sh", "-c", installing],
        env={"PATH": os.environ["PATH"], "DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:]


class Machine:
    """A machine of a directory tree: boots, runs commands, is powered off."""

    def __init__(self, tree: Path, processes: Processes) -> None:
        self.tree = tree
        self.process: Process = processes.start(
            "machine",
            [
                *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe"),
                *("--directory", tree, "--boot"),
            ],
        )
        wait_for("the machine has booted", self._has_booted, 120)

    def _has_booted(self) -> bool:
        assert self.process.exit_code is None, self.process.output()[-2_000:]
        return self._first() is not None and self.run(
            "systemctl", "is-system-running"
        ).stdout.strip() in {"running", "degraded"}

    def _first(self) -> str | None:
        """Return the id that its first process has outside."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return next(iter(children.read_text().split()), None)

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command inside."""
        return subprocess.run(
            [
                *("nsenter", "--target", str(self._first()), "--mount", "--uts", "--ipc", "--pid"),
                *("--cgroup", "--", *map(str, words)),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def asked(self, *words: str | Path) -> str:
        """Run a command inside; return what it prints. The test fails if it fails."""
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.asked("systemctl", "show", unit, f"--property={name}", "--value")

    def power_off(self) -> None:
        """Stop all units, and wait until the machine has ended."""
        self.run("systemctl", "poweroff", "--no-wall")
        wait_for("the machine has ended", lambda: self.process.exit_code is not None)
