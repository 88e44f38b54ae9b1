"""The demo, run as a user runs it: it holds, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from caughtup.demo.processes.children import free_ports
from tests.support.terminal import Terminal

pytestmark = pytest.mark.heavy

_COMMAND = [sys.executable, "-m", "caughtup.agents", "demo"]
_READY_SECONDS = 120.0
_END_SECONDS = 40.0


@pytest.mark.thorough
@pytest.mark.timeout(480)
def test_the_scripted_demo_sees_all_that_was_done():
    played = subprocess.run(
        [*_COMMAND, "--story", "streams", "--scripted", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )

    *facts, last = map(json.loads, played.stdout.splitlines())
    wrong = [fact for fact in facts if not fact["ok"]]
    assert not wrong, (wrong, played.stderr[-3000:])
    assert len(facts) >= 15
    assert all(fact.keys() == {"fact", "expected", "seen", "ok"} for fact in facts)
    assert last["ok"] is True
    assert last["seconds"] < 480
    assert played.returncode == 0


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.thorough)],
    ids=lambda n: getattr(n, "name", None),
)
def test_however_the_demo_is_ended_it_leaves_nothing_running(
    number: signal.Signals, tmp_path: Path
):
    port = free_ports(1)[0]
    demo = subprocess.Popen(
        # A shell that runs the tests in the background ignores Ctrl-C, and so would the demo.
        ["env", "--default-signal=INT", *_COMMAND, "--web-port", str(port)],
        stdout=(out := (tmp_path / "out").open("w+")),
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        _wait(lambda: _answers(port, demo), _READY_SECONDS)
        if number is signal.SIGINT:
            _wait(lambda: "Ctrl-C ends" in (tmp_path / "out").read_text(), _READY_SECONDS)
            _what_it_says_to_try_works((tmp_path / "out").read_text(), port)
        children = _children(demo.pid)
        directories = set(filter(None, map(_working_directory, children))) - {Path.cwd()}
        assert len(children) >= 4, "two brokers, the service and the watchdog"

        demo.send_signal(number)

        code = demo.wait(_END_SECONDS)
        _wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), _END_SECONDS)
        _wait(lambda: not any(d.exists() for d in directories if "caughtup-" in d.name), 10.0)
        if number is signal.SIGINT:
            assert code == 0
            said = demo.stderr.read()
            assert "Traceback" not in said
            assert "rdkafka" not in said
    finally:
        demo.kill()
        demo.wait()
        demo.stderr.close()
        out.close()


def _what_it_says_to_try_works(said: str, port: int) -> None:
    assert f"http://127.0.0.1:{port}/" in said
    commands = [shlex.split(line) for line in said.splitlines() if " -m caughtup.agents " in line]
    assert [command[3] for command in commands] == ["lag", "lag", "simulate", "explain", "top"]
    assert f"Kafka:     {commands[0][5]}\n" in said

    def shows_groups() -> bool:
        ran = subprocess.run(commands[0], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode in (0, 3), ran.stderr  # 3: there is no group yet
        return ran.stdout.split()[:2] == ["GROUP", "STATE"]

    _wait(shows_groups, _READY_SECONDS)
    with Terminal(commands[4]) as terminal:
        terminal.wait_for("demo at http://")
        terminal.press("q")
        assert terminal.ended() == 0


def _wait(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.1)


def _answers(port: int, demo: subprocess.Popen[str]) -> bool:
    assert demo.poll() is None, demo.stderr.read()[-3_000:]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def _children(parent: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry))
    return found


def _working_directory(pid: int) -> Path | None:
    """Return where a process runs; None of one that has ended meanwhile, as a compiler does."""
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return None
