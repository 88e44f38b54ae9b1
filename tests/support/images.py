"""The Dockerfile's images, built and run with Debian's packages alone: no Docker, no registry.

``buildah`` builds them on a base that ``debootstrap`` makes of Debian's own Python. A container is
the image's files, read only, in namespaces of its own but for the network, as the image's user
without capabilities; its first process has the process id 1.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from caughtup.demo.processes.children import ClosedOnExit, Process, Processes
from tests.observability.repository import ROOT
from tests.support.service import wait_for

#: The image's user.
UID = 10001
#: What builds, and what this machine has to have for it.
TOOLS = ("buildah", "debootstrap", "unshare", "setpriv")
_PACKAGES = "python3-venv,python-is-python3,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
#: Those of whoever looks into this machine's connections; Python and Java have to trust them, too.
_OWN_CERTIFICATES = "usr/local/share/ca-certificates"
#: Makes the image's files the root: read only, with what every container gets. Nothing in a tmpfs
#: may be run or loaded, as with Docker's ``--tmpfs``.
_ENTER = """
root=$1 user=$2 tmp=$3 mounts=$4; shift 4
mount --make-rprivate /
mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"
mount --bind /etc/hosts "$root/etc/hosts"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 sys "$root/sys"
mkdir -p "$root/sys/fs/cgroup" && mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero random urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s /proc/self/fd "$root/dev/fd"
for place in $tmp; do mount -t tmpfs -o mode=1777,noexec,nosuid,nodev tmp "$root$place"; done
for one in $mounts; do mount --bind "${one#*=}" "$root${one%%=*}"; done
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
  --bounding-set=-all --inh-caps=-all "$@"
"""


def missing() -> str | None:
    """Return why no image can be built here; None if one can."""
    if os.geteuid() != 0:
        return "building an image without Docker needs root"
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else None


@dataclass(frozen=True)
class Image:
    """A built image: its files in a directory, and its configuration as Docker has it."""

    name: str
    root: Path
    inspected: Mapping[str, Any]
    #: How long the build took, in seconds.
    seconds: float

    @cached_property
    def config(self) -> dict[str, Any]:
        """What ``docker inspect`` calls Config."""
        return dict(self.inspected["Docker"]["config"])

    @property
    def layers(self) -> list[int]:
        """The size of each layer, in bytes, from the base on."""
        return [layer["size"] for layer in json.loads(self.inspected["Manifest"])["layers"]]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that every process of it has."""
        return dict(text.split("=", 1) for text in self.config["Env"])

    @property
    def home(self) -> str:
        """The home directory of its user, which Docker gives every process as HOME."""
        users = [line.split(":") for line in (self.root / "etc/passwd").read_text().splitlines()]
        (home,) = (user[5] for user in users if user[2] == self.config["User"])
        return home

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield every file and directory below its root, without those that are mounted."""
        for directory, names, files in os.walk(self.root):
            if Path(directory) == self.root:
                names[:] = [name for name in names if name not in {"dev", "proc", "sys"}]
            for name in (*names, *files):
                path = Path(directory, name)
                yield f"/{path.relative_to(self.root)}", path.lstat()


class Builder:
    """Builds images in a directory of its own, which is empty when it is closed."""

    def __init__(self, directory: Path, wheels: Path) -> None:
        self._directory = directory
        #: The files of the base, once one was made.
        self.debian = directory / "debian"
        self._context = directory / "context"
        self._context.mkdir()
        for wheel in wheels.glob("*.whl"):
            shutil.copy(wheel, self._context)
        self.images, self.running = directory / "images", directory / "running"
        self._store = (
            "--root",
            str(self.images),
            "--runroot",
            str(self.running),
            "--storage-driver",
            "overlay",
        )

    def close(self) -> None:
        """Unmount and remove all that was built."""
        self.buildah("umount", "--all")
        self.buildah("rm", "--all")
        subprocess.run(
            ["umount", "--lazy", self.images / "overlay"], capture_output=True, check=False
        )
        shutil.rmtree(self._directory)

    def buildah(self, *words: str | Path, seconds: float = 900) -> subprocess.CompletedProcess[str]:
        """Run ``buildah`` with what it prints on both outputs as one text."""
        return subprocess.run(
            ["buildah", *self._store, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )

    def asked(self, *words: str | Path) -> str:
        """Run ``buildah``; return what it prints. The test fails if it fails."""
        done = self.buildah(*words)
        assert done.returncode == 0, f"buildah {' '.join(map(str, words))}: {done.stdout[-4_000:]}"
        return done.stdout.strip()

    def make_base(self, name: str, *, certificates: bool = True) -> None:
        """Make an image of Debian with its Python, and with or without anybody's certificates."""
        files = self.debian
        if not files.exists():
            subprocess.run(
                ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", files],
                stdout=subprocess.DEVNULL,
                timeout=900,
                check=True,
            )
            for cache in (*files.glob("var/cache/apt/archives/*.deb"), files / "var/cache/apt"):
                shutil.rmtree(cache) if cache.is_dir() else cache.unlink()
            for lists in (files / "var/lib/apt/lists").iterdir():
                shutil.rmtree(lists) if lists.is_dir() else lists.unlink()
            shutil.copytree(f"/{_OWN_CERTIFICATES}", files / _OWN_CERTIFICATES, dirs_exist_ok=True)
            # In a container it is the machine's, as Docker's is one with the container's name.
            (files / "etc/hosts").touch()
            trusting = ["chroot", files, "update-ca-certificates"]
            subprocess.run(trusting, stdout=subprocess.DEVNULL, timeout=120, check=True)
        container = self.asked("from", "scratch")
        root = Path(self.asked("mount", container))
        subprocess.run(["cp", "-a", f"{files}/.", root], check=True)
        if not certificates:
            (root / CERTIFICATES).unlink()
        self.asked("unmount", container)
        self.asked("commit", "--rm", container, name)

    def build(self, target: str, base: str) -> subprocess.CompletedProcess[str]:
        """Build a stage of the Dockerfile on a base, as ``docker build --target`` does."""
        return self.buildah(
            "bud",
            *("--isolation", "chroot", "--network", "host", "--format", "docker"),
            *("--build-arg", f"PYTHON={base}", "--build-arg", "WHEELS=."),
            *("--layers", "--target", target, "--tag", target),
            *("--file", ROOT / "Dockerfile", self._context),
        )

    def image(self, target: str, base: str) -> Image:
        """Build a stage, and lay its files out."""
        began = time.monotonic()
        done = self.build(target, base)
        assert done.returncode == 0, done.stdout[-4_000:]
        seconds = time.monotonic() - began
        inspected = json.loads(self.asked("inspect", "--type", "image", target))
        container = self.asked("from", "--pull-never", target)
        return Image(target, Path(self.asked("mount", container)), inspected, seconds)


class Container(ClosedOnExit):
    """A container of an image: start, ask for its health, stop."""

    def __init__(
        self,
        image: Image,
        processes: Processes,
        *,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
        writable: Sequence[str] = ("/tmp",),
        mounts: Mapping[str, Path] | None = None,
        group: Path | None = None,
    ) -> None:
        """Start it.

        ``writable``: where a tmpfs is mounted. ``mounts``: directories of this machine, by their
        place in the container; neither has a blank. ``group``: its control group's directory.
        """
        self.image = image
        self._environment = {"HOME": image.home, **image.environment, **(environment or {})}
        self._mounts = " ".join(f"{place}={path}" for place, path in (mounts or {}).items())
        words = [*image.config["Entrypoint"], *(command or image.config["Cmd"])]
        joins = (
            [] if group is None else ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "-"]
        )
        self.process: Process = processes.start(
            f"{image.name}-{time.monotonic_ns()}", [*joins, *self._entering(words, writable)]
        )

    def _entering(self, words: Sequence[str], writable: Sequence[str]) -> list[str]:
        variables = [f"{name}={value}" for name, value in self._environment.items()]
        return [
            *("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"),
            *(
                "sh",
                "-ec",
                _ENTER,
                "-",
                str(self.image.root),
                self.image.config["User"],
                " ".join(writable),
                self._mounts,
            ),
            *(
                "/usr/bin/env",
                "-i",
                "-C",
                self.image.config["WorkingDir"] or "/",
                *variables,
                *words,
            ),
        ]

    def close(self) -> None:
        """Kill all its processes."""
        self.process.kill()

    def healthy(self) -> bool:
        """Return whether the image's own health check succeeds, beside the process."""
        words = self.image.config["Healthcheck"]["Test"]
        assert words[0] == "CMD"
        command = self._entering(words[1:], ("/tmp",))
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0

    @property
    def pid(self) -> int:
        """The id that its first process has outside; inside it is 1."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = wait_for("the container has a process", lambda: children.read_text().split())
        return int(found[0])

    def wait_healthy(self, seconds: float = 90.0) -> None:
        """Wait until the health check succeeds."""

        def check() -> bool:
            assert self.process.exit_code is None, self.process.output()
            return self.healthy()

        wait_for("the container is healthy", check, seconds)
