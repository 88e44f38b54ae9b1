"""`caughtup files`: what is written, what isn't overwritten, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli import files as command

CONTENTS = {
    "README.md": b"read me",
    "caughtup-follower.jar": b"PK",
    "docs/operating.md": b"operate",
    "docs/topics/lag.schema.json": b"{}",
    "prometheus/caughtup.rules.yml": b"groups: []",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with a few files for others."""
    installed = tmp_path / "site-packages" / "caughtup"
    for name, content in CONTENTS.items():
        path = installed / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(command, "_PACKAGE", installed)
    return installed


def files(*words: str | Path) -> Result:
    return CliRunner().invoke(command.files, [str(word) for word in words])


def written(directory: Path) -> dict[str, bytes]:
    return {
        file.relative_to(directory).as_posix(): file.read_bytes()
        for file in directory.rglob("*")
        if file.is_file()
    }


@pytest.mark.usefixtures("package")
def test_all_of_them_are_written_and_named(tmp_path: Path) -> None:
    ran = files("--to", tmp_path / "new" / "directory")
    assert ran.exit_code == 0
    assert written(tmp_path / "new" / "directory") == CONTENTS
    assert ran.stdout.splitlines() == [
        f"wrote {tmp_path}/new/directory/{name}" for name in sorted(CONTENTS)
    ]
    assert ran.stderr == ""


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["docs"], ["docs/operating.md", "docs/topics/lag.schema.json"]),
        (["docs/"], ["docs/operating.md", "docs/topics/lag.schema.json"]),
        (["*.rules.yml", "README.md"], ["README.md", "prometheus/caughtup.rules.yml"]),
        ([], sorted(CONTENTS)),
    ],
)
def test_patterns_choose_and_a_list_writes_nothing(
    patterns: list[str], expected: list[str], tmp_path: Path
) -> None:
    before = written(tmp_path)
    assert files("--list", *patterns).stdout.splitlines() == expected
    assert written(tmp_path) == before
    files("--to", tmp_path / "to", *patterns)
    assert sorted(written(tmp_path / "to")) == expected


@pytest.mark.usefixtures("package")
def test_a_file_that_differs_is_kept_and_then_none_is_written(tmp_path: Path) -> None:
    (tmp_path / "to" / "prometheus").mkdir(parents=True)
    rules = tmp_path / "to" / "prometheus" / "caughtup.rules.yml"
    rules.write_bytes(b"my own")
    ran = files("--to", tmp_path / "to")
    assert ran.exit_code == 1
    assert ran.stderr == (
        f"caughtup: {rules}: exists already with other content; nothing was written; "
        "--force overwrites\n"
    )
    assert written(tmp_path / "to") == {"prometheus/caughtup.rules.yml": b"my own"}
    assert files("--to", tmp_path / "to", "--force").exit_code == 0
    assert written(tmp_path / "to") == CONTENTS


@pytest.mark.usefixtures("package")
def test_written_again_they_are_unchanged(tmp_path: Path) -> None:
    files("--to", tmp_path / "to")
    ran = files("--to", tmp_path / "to", "docs")
    assert ran.exit_code == 0
    assert {line.split()[0] for line in ran.stdout.splitlines()} == {"unchanged"}


@pytest.mark.usefixtures("package")
def test_a_directory_that_cant_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = files("--to", tmp_path / "file" / "below")
    assert ran.exit_code == 1
    assert ran.stderr.startswith(f"caughtup: cannot write {tmp_path}/file/below")
    assert ran.stderr.count("\n") == 1


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("words", [[], ["--list", "--to", "x"]])
def test_either_a_list_or_a_directory(words: list[str]) -> None:
    assert files(*words).exit_code == 2


@pytest.mark.usefixtures("package")
def test_a_name_that_there_is_not_is_said(tmp_path: Path) -> None:
    ran = files("--to", tmp_path / "to", "docs", "rules.yml")
    assert ran.stderr == (
        "caughtup: there is no file rules.yml; `caughtup files --list` has their names\n"
    )
    assert not (tmp_path / "to").exists()


def test_an_installation_without_the_jar_says_so(package: Path, tmp_path: Path) -> None:
    (package / "share" / "caughtup-follower.jar").unlink()
    said = (
        "caughtup: caughtup-follower.jar is not in this installation: "
        "`make wheel` makes one that has it\n"
    )
    ran = files("--to", tmp_path / "to")
    assert (ran.exit_code, ran.stderr) == (0, said)
    ran = files("--list", "caughtup-follower.jar")
    assert (ran.exit_code, ran.stderr) == (1, said)
    assert files("--list", "docs").stderr == ""


def test_a_package_with_neither_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_PACKAGE", tmp_path / "caughtup.whl" / "caughtup")
    ran = files("--list")
    assert ran.exit_code == 1
    assert "install the wheel" in ran.stderr


def test_a_checkout_has_what_its_wheel_will_have() -> None:
    names = files("--list").stdout.splitlines()
    assert {"prometheus/caughtup.rules.yml", "grafana/dashboards/caughtup.json"} <= set(names)
    assert {"docs/operating.md", "caughtup.example.toml", "CHANGELOG.md", "LICENSE"} <= set(names)
