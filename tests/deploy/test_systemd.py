"""The systemd unit: what systemd's own tools say of it, and that its command exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click

from caughtup.agents.main import main
from tests.observability.repository import OPERATING, ROOT

UNIT = ROOT / "deploy" / "systemd" / "caughtup.service"
USERS = ROOT / "deploy" / "systemd" / "caughtup.sysusers"


def value(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    return str(found)


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze; it needs no systemd that runs."""
    return subprocess.run(
        ["systemd-analyze", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def verified(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Have a unit read whose program is this environment's."""
    program = Path(sys.executable).parent / "caughtup"
    unit = directory / "caughtup.service"
    unit.write_text(text.replace(shlex.split(value("ExecStart"))[0], str(program)))
    return analyze("verify", unit)


def test_systemd_finds_nothing_to_complain_of(tmp_path: Path) -> None:
    done = verified(UNIT.read_text(), tmp_path)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_systemd_would_find_a_wrong_setting(tmp_path: Path) -> None:
    done = verified(UNIT.read_text().replace("ProtectHome=yes", "ProtectHome=certainly"), tmp_path)
    assert "Failed to parse protect home value" in done.stderr


def test_how_exposed_it_is_stands_in_the_documents() -> None:
    done = analyze("security", "--offline=true", "--no-pager", UNIT)
    exposure = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure == re.findall(r"an exposure of \*\*([\d.]+)\*\*", OPERATING.read_text())
    assert float(exposure[0]) < 2


def test_its_command_and_its_user_exist() -> None:
    program, *words = shlex.split(value("ExecStart"))
    assert program == "/opt/caughtup/bin/caughtup"
    assert f"python3 -m venv {Path(program).parents[1]}" in OPERATING.read_text()
    _, command, rest = main.resolve_command(click.Context(main), words)
    assert command is not None
    assert rest[0] in {name for option in command.params for name in option.opts}
    assert rest[1] in OPERATING.read_text()
    assert re.search(rf"^u {value('User')} ", USERS.read_text(), re.MULTILINE)
