"""What images are made of: locks that hold what is needed and no more, and digests by a script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.observability.repository import ROOT, read_yaml

SCRIPT = ROOT / "scripts" / "pin_images.sh"
IMAGES = ("python", "kafka", "prometheus", "alertmanager", "grafana")


def locked(name: str) -> dict[str, tuple[str, int]]:
    """Return the packages of a lock: version, and how many hashes."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        package, version, hashes = re.fullmatch(r"(\S+)==(\S+)(.*)", line).groups()  # type: ignore[union-attr]
        found[canonicalize_name(package)] = (version, hashes.count("--hash=sha256:"))
    return found


def needed(*extras: str) -> set[str]:
    """Name what the installed packages say that caughtup needs, and they in turn."""
    found: set[str] = set()
    waiting = [Requirement(f"caughtup[{','.join(extras)}]")]
    while waiting:
        wanted = waiting.pop()
        for text in distribution(wanted.name).requires or ():
            requirement = Requirement(text)
            chosen = [{"extra": extra} for extra in wanted.extras or {""}]
            if requirement.marker and not any(requirement.marker.evaluate(one) for one in chosen):
                continue
            name = canonicalize_name(requirement.name)
            if name not in found:
                found.add(name)
                waiting.append(requirement)
    return found - {"caughtup"}


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("requirements-service.lock", ("otlp",)), ("requirements-history.lock", ("otlp", "spark"))],
)
def test_an_image_gets_what_it_needs_and_nothing_else(lock: str, extras: tuple[str, ...]) -> None:
    assert set(locked(lock)) == needed(*extras)


@pytest.mark.parametrize("lock", ["requirements-service.lock", "requirements-history.lock"])
def test_an_image_gets_the_versions_that_are_tested(lock: str) -> None:
    tested = locked("requirements.lock")
    assert {name: locked(lock)[name] for name in locked(lock)} == {
        name: tested[name] for name in locked(lock)
    }
    for name, (version, _) in locked(lock).items():
        try:
            assert distribution(name).version == version
        except PackageNotFoundError:
            pytest.fail(f"{name} is locked and not installed")


def test_a_checkout_gets_what_the_demo_and_the_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    assert "demo" not in project["project"]["optional-dependencies"]
    wanted = [Requirement(text) for name in ("demo", "dev") for text in groups[name]]
    wanted += [Requirement(name) for name in needed("history", "spark", "top", "pkcs12", "otlp")]
    assert {canonicalize_name(one.name) for one in wanted} <= set(locked("requirements.lock"))


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_every_package_of_a_lock_has_its_hashes(lock: str) -> None:
    assert locked(lock)
    assert {name for name, (_, hashes) in locked(lock).items() if not hashes} == set()


def test_what_makes_the_wheel_is_locked() -> None:
    assert {"hatchling", "setuptools", "wheel"} <= set(locked("requirements-build.lock"))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [
        Path(shutil.copy(ROOT / name, tmp_path)) for name in ("Dockerfile", "docker-compose.yml")
    ]


def pin(files: list[Path], answer: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a docker that answers so; ``$n`` is the number of the question."""
    programs = files[0].parent / "programs"
    programs.mkdir(exist_ok=True)
    docker = programs / "docker"
    docker.write_text(
        f'#!/bin/sh\necho "$*" >>{programs}/asked\nn=$(wc -l <{programs}/asked)\n{answer}\n'
    )
    docker.chmod(0o755)
    return subprocess.run(
        ["sh", SCRIPT, *files],
        env={"PATH": f"{programs}{os.pathsep}/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_digests_are_written_behind_their_tags_and_nothing_else_is_changed(
    files: list[Path],
) -> None:
    before = [file.read_text() for file in files]
    done = pin(files, 'printf "sha256:%064x\\n" "$n"')
    assert done.returncode == 0, done.stderr
    asked = (files[0].parent / "programs" / "asked").read_text().splitlines()
    assert len(asked) == len(IMAGES)
    for line in asked:
        assert line.startswith("buildx imagetools inspect --format {{.Manifest.Digest}} ")
        assert "@" not in line
    after = [file.read_text() for file in files]
    digests = r"@sha256:[0-9a-f]{64}"
    assert [re.sub(digests, "", text) for text in after] == [
        re.sub(digests, "", text) for text in before
    ]
    assert all(old != new for old, new in zip(before, after, strict=True))
    dockerfile, compose = after
    assert (
        len(
            re.findall(f"^ARG PYTHON=python:3.11-slim-bookworm{digests}$", dockerfile, re.MULTILINE)
        )
        == 1
    )
    services = read_yaml(files[1])["services"]
    for name in IMAGES[1:]:
        assert re.search(f"{name}:[^@]+{digests}$", services[name]["image"])
    assert len(set(re.findall(digests, dockerfile + compose))) == len(IMAGES)
    pin(files, 'printf "sha256:%064x\\n" 7')
    assert set(re.findall(digests, files[1].read_text())) == {f"@sha256:{7:064x}"}


def test_tags_without_digests_get_theirs(files: list[Path]) -> None:
    for file in files:
        file.write_text(re.sub(r"@sha256:[0-9a-f]{64}", "", file.read_text()))
    assert pin(files, 'printf "sha256:%064x\\n" 7').returncode == 0
    assert files[0].read_text().count("@sha256:") == 1
    assert files[1].read_text().count("@sha256:") == len(IMAGES) - 1


@pytest.mark.parametrize(
    "answer", ["exit 1", "echo sha256:short", '[ "$n" = 1 ] && printf "sha256:%064x\\n" 7']
)
def test_where_a_digest_is_missing_no_file_is_changed(answer: str, files: list[Path]) -> None:
    before = [file.read_text() for file in files]
    assert pin(files, answer).returncode != 0
    assert [file.read_text() for file in files] == before


def test_without_docker_it_says_so(files: list[Path]) -> None:
    programs = files[0].parent / "programs"
    programs.mkdir()
    for name in ("mktemp", "rm"):
        (programs / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(
        ["/bin/sh", SCRIPT, *files],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "there is no docker" in done.stderr
