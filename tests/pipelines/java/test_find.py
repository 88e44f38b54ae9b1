"""Finding Java where there is one, and saying what to type where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from caughtup.pipelines.java.find import JavaMissing, find_java

ENSURE_JAVA = Path(__file__).parents[3] / "scripts" / "ensure_java.sh"
WHAT_TO_TYPE = "sudo apt-get install -y --no-install-recommends openjdk-17-jre-headless"


def home_of(directory: Path, version: str) -> Path:
    """A Java home by its layout: only its release file is looked at, its program is never run."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (directory / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return directory


def test_this_machines_java_runs_and_has_the_version_found() -> None:
    java = find_java()
    printed = subprocess.run(
        [java.program, "-version"], capture_output=True, text=True, check=True
    ).stderr
    assert f'version "{java.version}' in printed
    assert java.program == java.home / "bin" / "java"


def test_java_is_found_when_the_path_lacks_it() -> None:
    assert find_java(environment={"PATH": "/nonexistent"}).version >= 17


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = home_of(tmp_path / "mine", "21.0.1")
    environment = {"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}
    assert find_java(environment=environment) == (home / "bin" / "java", home, 21)


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = home_of(tmp_path / "old", "1.8.0_392")
    eleven = home_of(tmp_path / "jvm" / "a-11", "11.0.2")
    usable = home_of(tmp_path / "jvm" / "b-21", "21.0.1")
    home_of(tmp_path / "jvm" / "c-25", "25.0.1")
    environment = {"JAVA_HOME": str(old), "PATH": str(eleven / "bin")}
    assert find_java(environment=environment, installed=tmp_path / "jvm").home == usable


def test_a_java_that_is_too_new_is_passed_over(tmp_path: Path) -> None:
    newest = home_of(tmp_path / "newest", "25")
    older = home_of(tmp_path / "jvm" / "older", "17.0.15")
    environment = {"JAVA_HOME": str(newest)}
    assert find_java(21, environment=environment, installed=tmp_path / "jvm").home == older
    assert find_java(environment=environment, installed=tmp_path / "jvm").home == newest


def test_without_any_java_one_line_says_what_to_type(tmp_path: Path) -> None:
    old = home_of(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing) as missing:
        find_java(environment={"JAVA_HOME": str(old)}, installed=tmp_path / "none")
    assert missing.value.message == (
        f"Java 17 or newer is needed (found: 11 in {old}); type: {WHAT_TO_TYPE}"
    )


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """A PATH with the few programs that the script uses, and neither java nor apt-get."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("id", "mktemp", "rm", "sed", "head"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    return str(tools)


def test_the_script_finds_java_when_the_path_lacks_it(path_without_java: str) -> None:
    java = find_java(environment={})
    ended = run_script(path_without_java, java.home.parent)
    assert ended.returncode == 0
    assert find_java(environment={"JAVA_HOME": str(Path(ended.stdout.strip()).parents[1])})
    assert ended.stderr == ""


def test_the_script_says_what_to_type_when_it_cannot_install(
    path_without_java: str, tmp_path: Path
) -> None:
    ended = run_script(path_without_java, tmp_path / "none")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == f"Java 17 or newer is needed; type: {WHAT_TO_TYPE}\n"


def run_script(path: str, installed: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", ENSURE_JAVA, installed],
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
