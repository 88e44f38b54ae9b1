"""npm packages with schemas, fetched once by npm itself and kept."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from caughtup.pipelines.java.jars import cache_directory


def packed_file(package: str, version: str, sha512: str, path: str) -> bytes:
    """Return a file of a package with a known digest.

    ``sha512`` in base64, as in ``npm view PACKAGE@VERSION dist.integrity``. Raises RuntimeError if
    npm can't fetch it, or if its digest differs.
    """
    kept = cache_directory() / "npm" / f"{package.strip('@').replace('/', '-')}-{version}.tgz"
    if not kept.exists():
        _fetch(f"{package}@{version}", kept)
    digest = base64.b64encode(hashlib.sha512(kept.read_bytes()).digest()).decode()
    if digest != sha512:
        raise RuntimeError(f"{kept} is not the {package} that is meant: its sha512 is {digest}")
    with tarfile.open(kept) as archive:
        file: IO[bytes] | None = archive.extractfile(f"package/{path}")
        assert file is not None, path
        return file.read()


def _fetch(wanted: str, kept: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("there is no npm; type: sudo apt-get install -y npm")
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when complete, so that no other process sees a part of it.
    with tempfile.TemporaryDirectory(dir=kept.parent) as directory:
        done = subprocess.run(
            [npm, "pack", wanted, "--pack-destination", directory],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        packed = list(Path(directory).glob("*.tgz"))
        if done.returncode or len(packed) != 1:
            raise RuntimeError(f"npm cannot fetch {wanted}: {done.stderr[-500:]}")
        packed[0].rename(kept)
