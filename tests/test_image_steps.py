"""The image's steps, done without Docker: the wheel and its locks make what the image has."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.observability.test_compose import stages
from tests.test_images import locked
from tests.test_packaging import run_build

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

#: Where the image's files lie, which here lie in a directory.
PLACES = re.compile(r"(?<![\w.])/(opt|wheels|unpacked|locks)\b")


def test_what_the_image_installs_is_the_wheel_and_what_its_lock_names(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "python").symlink_to(sys.executable)
    run_build(tmp_path / "wheels")
    for sdist in (tmp_path / "wheels").glob("*.tar.gz"):
        sdist.unlink()
    steps = re.findall(r"^RUN (.+)$", stages()["build"], re.MULTILINE)
    assert len(steps) == 6
    for step in steps:
        done = subprocess.run(
            ["sh", "-ec", PLACES.sub(rf"{tmp_path}/\1", step)],
            env={**os.environ, "PATH": f"{tmp_path}/programs:/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    installed = {
        str(metadata["Name"]).lower().replace("_", "-").replace(".", "-"): metadata["Version"]
        for path in (tmp_path / "opt" / "caughtup" / "lib").rglob("*.dist-info/METADATA")
        for metadata in [email.message_from_bytes(path.read_bytes())]
    }
    wanted = {name: version for name, (version, _) in locked("requirements-service.lock").items()}
    assert installed.keys() - {"pip", "setuptools"} == wanted.keys() | {"caughtup"}
    assert {name: installed[name] for name in wanted} == wanted
    command = tmp_path / "opt" / "caughtup" / "bin" / "caughtup"
    for words in (["--help"], ["run", "--help"], ["files", "--list"]):
        assert subprocess.run([command, *words], capture_output=True, check=False).returncode == 0
