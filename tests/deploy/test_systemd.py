"""The systemd units: what systemd's own tools say of them, and that their command exists."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from caughtup.agents.main import main
from caughtup.agents.process.health import Health
from caughtup.agents.web.server import WebServer
from caughtup.models.state.cluster import ClusterState
from tests.observability.repository import OPERATING, ROOT
from tests.support.settings import settings_from

UNIT = ROOT / "deploy" / "systemd" / "caughtup.service"
#: Of several instances on a machine, each with a port of its own.
TEMPLATE = UNIT.with_name("caughtup@.service")
USERS = ROOT / "deploy" / "systemd" / "caughtup.sysusers"


each_unit = pytest.mark.parametrize("path", [UNIT, TEMPLATE], ids=lambda path: path.name)


def value(name: str, path: Path = UNIT) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", path.read_text(), re.MULTILINE)
    return str(found)


def instance(path: Path) -> str:
    """Return a unit's name; that of a template with a port."""
    return path.name.replace("@.", "@8081.")


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze; it needs no systemd that runs."""
    return subprocess.run(
        ["systemd-analyze", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def verified(text: str, unit: Path) -> subprocess.CompletedProcess[str]:
    """Have a unit written and read whose program is this environment's."""
    program = Path(sys.executable).parent / "caughtup"
    unit.write_text(text.replace(shlex.split(value("ExecStart"))[0], str(program)))
    return analyze("verify", unit)


@each_unit
def test_systemd_finds_nothing_to_complain_of(path: Path, tmp_path: Path) -> None:
    done = verified(path.read_text(), tmp_path / instance(path))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@each_unit
def test_systemd_would_find_a_wrong_setting(path: Path, tmp_path: Path) -> None:
    wrong = path.read_text().replace("ProtectHome=yes", "ProtectHome=certainly")
    done = verified(wrong, tmp_path / instance(path))
    assert "Failed to parse protect home value" in done.stderr


@each_unit
def test_how_exposed_it_is_stands_in_the_documents(path: Path, tmp_path: Path) -> None:
    unit = Path(shutil.copy(path, tmp_path / instance(path)))
    done = analyze("security", "--offline=true", "--no-pager", unit)
    exposure = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure == re.findall(r"an exposure of \*\*([\d.]+)\*\*", OPERATING.read_text())
    assert float(exposure[0]) < 2


@each_unit
def test_its_command_and_its_user_exist(path: Path) -> None:
    program, *words = shlex.split(value("ExecStart", path))
    assert program == "/opt/caughtup/bin/caughtup"
    assert f"python3 -m venv {Path(program).parents[1]}" in OPERATING.read_text()
    _, command, rest = main.resolve_command(click.Context(main), words)
    assert command is not None
    assert rest[0] in {name for option in command.params for name in option.opts}
    assert rest[1] in OPERATING.read_text()
    assert re.search(rf"^u {value('User', path)} ", USERS.read_text(), re.MULTILINE)


def test_the_template_is_the_unit_but_for_what_each_instance_has_of_its_own() -> None:
    def lines(path: Path) -> list[str]:
        return [line for line in path.read_text().splitlines() if line and line[0] != "#"]

    unit, template = lines(UNIT), lines(TEMPLATE)
    assert [line for line in template if "%i" in line] == [
        f"{unit[1]} (port %i)",
        "Environment=CAUGHTUP_WEB_PORT=%i",
        "EnvironmentFile=-/etc/caughtup/%i.env",
        "RuntimeDirectory=caughtup-%i",
        "WorkingDirectory=/run/caughtup-%i",
    ]
    own = ("Description=", "RuntimeDirectory=", "WorkingDirectory=")
    assert [line for line in template if "%i" not in line] == [
        line for line in unit if not line.startswith(own)
    ]


def test_instances_of_the_template_are_found_by_each_other_at_their_ports() -> None:
    name, _, port = value("Environment", TEMPLATE).replace("%i", "8081").partition("=")
    settings = settings_from({name.removeprefix("CAUGHTUP_").lower(): port})
    server = WebServer(settings, ClusterState("cluster-1", {}), Health())
    assert server.address == "http://127.0.0.1:8081"
    (enabled,) = re.findall(r"`systemctl enable --now (caughtup@[^`]+)`", OPERATING.read_text())
    ports = re.findall(r"caughtup@(\d+)", enabled)
    assert len(set(ports)) == len(enabled.split()) == 3
