"""docker-compose.yml's own service, run by podman: what of it needs no registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.observability.repository import ROOT
from tests.support.images import Builder

TOOLS = ("podman", "runc")
#: Podman asks for more than what a container may raise its limits to.
_ULIMITS = {"nofile": 1024, "nproc": 1000}


def missing() -> str | None:
    """Return why nothing can be composed here; None if something can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else None


class Composed:
    """The service ``caughtup`` of the compose file, alone, on this machine's network."""

    def __init__(self, builder: Builder, directory: Path, variables: Mapping[str, str]) -> None:
        directory.mkdir()
        storage = directory / "storage.conf"
        storage.write_text(
            f'[storage]\ndriver="overlay"\ngraphroot="{builder.images}"\n'
            f'runroot="{builder.running}"\n'
        )
        engine = directory / "containers.conf"
        engine.write_text(
            '[engine]\nruntime="runc"\ncgroup_manager="cgroupfs"\nevents_logger="file"\n'
        )
        self._override = directory / "override.yml"
        limits = "".join(
            f"      {name}: {{soft: {most}, hard: {most}}}\n" for name, most in _ULIMITS.items()
        )
        named = "".join(f'      {name}: "{value}"\n' for name, value in variables.items())
        self._override.write_text(
            "services:\n  caughtup:\n    network_mode: host\n"
            f"    environment:\n{named}    ulimits:\n{limits}"
        )
        self._environment = {
            **os.environ,
            "CONTAINERS_CONF": str(engine),
            "CONTAINERS_STORAGE_CONF": str(storage),
        }

    def compose(self, *words: str) -> str:
        """Run ``podman-compose``; return its output. The test fails if it fails."""
        program = Path(sys.executable).parent / "podman-compose"
        files = ("-f", str(ROOT / "docker-compose.yml"), "-f", str(self._override))
        return self._run([str(program), *files, *words])

    def podman(self, *words: str) -> str:
        """Run ``podman``; return its output. The test fails if it fails."""
        return self._run(["podman", *words])

    def is_healthy(self, container: str) -> bool:
        """Run the health check of the compose file; podman itself needs systemd to do so."""
        command = ["podman", "healthcheck", "run", container]
        return (
            subprocess.run(
                command, env=self._environment, capture_output=True, check=False
            ).returncode
            == 0
        )

    def _run(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command,
            env=self._environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2_000:]}"
        return done.stdout
