"""The wheel, installed as people install tools, into environments that have nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from caughtup.demo.processes.children import free_ports
from caughtup.followers.kafka_streams.jar import build_jar

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[1]
INSTALLERS = {
    "pip": ["{tools}/bin/python", "-m", "pip", "install", "--quiet", "{wheel}"],
    "pipx": ["{tools}/bin/pipx", "install", "{wheel}"],
    "uv": ["{tools}/bin/uv", "tool", "install", "--python", sys.executable, "{wheel}"],
}


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` makes."""
    directory = tmp_path_factory.mktemp("dist")
    jar = build_jar(directory / "caughtup-follower.jar")
    build = (
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        directory,
        ROOT,
    )
    done = run(*build, FOLLOWER_JAR=str(jar))
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = directory.glob("*.whl")
    return made


@pytest.fixture(scope="module", params=sorted(INSTALLERS))
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The wheel's command, in a home of its own: what installed it, and where it is."""
    installer, home = request.param, tmp_path_factory.mktemp(request.param)
    tools = home / "tools"
    assert run(sys.executable, "-m", "venv", tools).returncode == 0
    if installer != "pip":
        assert run(tools / "bin" / "pip", "install", "--quiet", installer).returncode == 0
    command = [word.format(tools=tools, wheel=wheel) for word in INSTALLERS[installer]]
    homes = {"HOME": home, "PIPX_HOME": home / "pipx", "PIPX_BIN_DIR": home / "bin"}
    homes |= {"UV_TOOL_DIR": home / "uv", "UV_TOOL_BIN_DIR": home / "bin"}
    done = run(*command, **{name: str(path) for name, path in homes.items()})
    assert done.returncode == 0, done.stdout + done.stderr
    return installer, (tools if installer == "pip" else home) / "bin" / "caughtup"


def test_its_help_has_the_commands(installed: tuple[str, Path]) -> None:
    done = run(installed[1], "--help")
    assert done.returncode == 0, done.stderr
    assert "Run the service." in done.stdout
    assert "demo" not in done.stdout


def test_the_demo_and_benchmarks_need_a_checkout(installed: tuple[str, Path]) -> None:
    for words, typed in ((["demo"], "make demo"), (["bench", "live"], "make install && ")):
        done = run(installed[1], *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"git clone caughtup's repository and type there: {typed}" in done.stderr
        assert done.stderr.count("\n") == 1


def test_it_has_its_files_with_it(installed: tuple[str, Path], tmp_path: Path) -> None:
    done = run(installed[1], "files", "--to", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "caughtup-follower.jar").read_bytes().startswith(b"PK")
    rules = "prometheus/caughtup.rules.yml"
    assert (tmp_path / rules).read_bytes() == (ROOT / rules).read_bytes()


def test_asked_about_a_cluster_that_isnt_there_it_says_one_line(
    installed: tuple[str, Path],
) -> None:
    done = run(installed[1], "check", "--bootstrap-servers", f"127.0.0.1:{free_ports(1)[0]}")
    assert done.returncode == 1
    assert done.stderr.startswith("caughtup: connect: cannot reach Kafka at 127.0.0.1:")
    assert done.stderr.count("\n") == 1


def test_what_it_says_of_a_missing_extra_fits_what_installed_it(
    installed: tuple[str, Path],
) -> None:
    installer, command = installed
    done = run(command, "pipeline", "compact", "--output", "tables")
    assert done.returncode == 1
    _, _, words = done.stderr.strip().partition("; type: ")
    expected = {
        "pip": "pip install 'caughtup[spark]'",
        "pipx": "pipx runpip caughtup install 'caughtup[spark]'",
        "uv": f"uv pip install --python {command.parents[1]}/uv/caughtup 'caughtup[spark]'",
    }
    assert words == expected[installer]
