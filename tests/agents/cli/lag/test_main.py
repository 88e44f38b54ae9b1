"""``caughtup lag`` where people read it: in pipes, and on real terminals of several widths."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from caughtup.agents.cli.lag import main as lag_command
from caughtup.agents.errors import UserError
from caughtup.agents.main import main
from caughtup.models.state.cluster import ClusterState
from tests.support.lag_program import EVERYTHING, LONG_GROUP, LONG_TOPIC, Looks, state
from tests.support.service import wait_for
from tests.support.states import (
    GAINING,
    HOSTILE,
    KEEPING_UP,
    NEVER_COMMITTED,
    STOPPED,
    everything,
    judged,
)

ROOT = Path(__file__).parents[3]
PROGRAM = f"{sys.executable} -m tests.support.lag_program"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell, whose pipes fail where any part of them does."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "20", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made = state(), everything()
    monkeypatch.setattr(lag_command, "ClusterLooks", lambda *_: Looks(made[EVERYTHING in sys.argv]))
    monkeypatch.setattr(sys, "argv", [])


def run(*arguments: str) -> Result:
    """Run the command in this process; its output goes nowhere that is a terminal."""
    return CliRunner().invoke(main, ["lag", *arguments])


def lag(*arguments: str) -> list[str]:
    ran = run(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def on_terminal(
    columns: int, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> str:
    """Run the command on a terminal of so many columns and return what came there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*PROGRAM.split(), *arguments],
        cwd=ROOT,
        env={**known, "TERM": "xterm", **(environment or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    return found.decode().replace("\r\n", "\n")


def test_a_pipe_gets_a_line_for_each_group_the_worst_first_and_whole_names() -> None:
    heading, *rows = (line.split() for line in lag())
    assert heading == ["GROUP", "STATE", "LAG", "SECONDS", "PARTITIONS", "MEMBERS", "TYPE"]
    assert [(row[0], row[1]) for row in rows] == [
        (NEVER_COMMITTED, "stopped"),
        (STOPPED, "stopped"),
        (GAINING, "slow"),
        (LONG_GROUP, "unknown"),
        (KEEPING_UP, "ok"),
    ]
    assert rows[1] == [STOPPED, "stopped", "4900", "2940", "2", "-", "-"]


def test_what_comes_behind_the_pipe_finds_what_it_looks_for() -> None:
    ran = shell(f"{PROGRAM} -p | head -1")
    assert ran.stdout.split()[:3] == ["GROUP", "TOPIC", "PARTITION"]
    assert "Traceback" not in ran.stderr
    assert "Broken" not in ran.stderr
    ran = shell(f"{PROGRAM} -p | grep -c '{LONG_GROUP}  {LONG_TOPIC} '")
    assert ran.stdout == "12\n"
    ran = shell(f"{PROGRAM} -p | awk '$8 == \"stopped\" {{print $1, $2, $3, $6}}'")
    assert ran.stdout == f"{NEVER_COMMITTED} clicks 1 5900\n{STOPPED} clicks 1 4900\n"
    ran = shell(f"FORCE_COLOR=1 {PROGRAM} | cat -v")
    assert "^[" not in ran.stdout
    ran = shell(f"PYTHONIOENCODING=ascii {PROGRAM} --everything")
    assert ran.returncode == 0


@pytest.mark.parametrize("arguments", ["", "-p", "--format json", "--watch"])
def test_who_stops_reading_ends_it_without_a_word(arguments: str) -> None:
    ran = shell(f"{PROGRAM} --many {arguments} | head -1; exit ${{PIPESTATUS[0]}}")
    assert ran.returncode == 1, "it did not write more than was read"
    assert (ran.stderr, len(ran.stdout.splitlines())) == ("", 1)


def test_a_pipe_has_every_line_however_many_there_are() -> None:
    ran = shell(f"{PROGRAM} --many --lagging | grep -c '^{LONG_GROUP}-[0-9]*  unknown  '")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "3000\n", "")


@pytest.mark.parametrize(
    ("columns", "arguments"),
    [(60, ()), (80, ()), (60, ("-p",)), (80, ("-p",)), (80, (STOPPED,)), (160, ()), (160, ("-p",))],
)
def test_no_line_is_longer_than_the_terminal_and_no_figure_is_cut(
    columns: int, arguments: tuple[str, ...]
) -> None:
    shown = [ESCAPES.sub("", line) for line in on_terminal(columns, arguments).splitlines()]
    assert max(map(cell_len, shown)) <= columns
    headings, *rows = shown
    assert {"GROUP", "STATE", "LAG"} <= set(headings.split())
    piped = lag(*arguments)
    assert len(rows) == len(piped) - 1
    at = piped[0].split().index("LAG")
    for row, whole in zip(rows, piped[1:], strict=True):
        assert whole.split()[at] in row.split()
        name, cut = whole.split()[0], row.split()[0]
        start, _, end = cut.partition("…")
        assert name.startswith(start)
        assert name.endswith(end)
    if columns == 160 and not arguments:
        assert shown == piped


def test_a_wide_table_is_whole_on_a_narrow_terminal_and_says_why() -> None:
    shown = ESCAPES.sub("", on_terminal(60, ["--wide", "-p"]))
    assert LONG_TOPIC in shown
    assert "COMMITTED" in shown
    assert "it usually commits every 60 s" in shown


def test_states_are_coloured_on_a_terminal_unless_it_is_told_otherwise() -> None:
    assert "\x1b[31mstopped\x1b[0m" in on_terminal(80)
    assert f"\n{STOPPED} " in on_terminal(80), "a group's name is no state"
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(80, environment=environment)


def first_words(*arguments: str) -> list[str]:
    return [line.split()[0] for line in lag(*arguments)[1:] if line]


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [
        (["--lagging"], [NEVER_COMMITTED, STOPPED, GAINING, LONG_GROUP]),
        (["--state", "slow,OK"], [GAINING, KEEPING_UP]),
        (["--state", "stopped", "--top", "1"], [NEVER_COMMITTED]),
        (["--sort", "lag", "--top", "2"], [LONG_GROUP, NEVER_COMMITTED]),
        (["--sort", "seconds", "--top", "2"], [NEVER_COMMITTED, STOPPED]),
        (["--sort", "name"], [LONG_GROUP, GAINING, KEEPING_UP, NEVER_COMMITTED, STOPPED]),
        (["*ing*"], [GAINING, KEEPING_UP]),
        (["k*", "stop[pq]ed"], [STOPPED, KEEPING_UP]),
        (["-p", "--lagging", "[sg]*"], [GAINING, STOPPED]),
        (["-p", "--sort", "lag", "--top", "3"], [LONG_GROUP] * 3),
        ([STOPPED], [STOPPED] * 2),
    ],
)
def test_rows_are_chosen_and_sorted_as_asked_for(arguments: list[str], groups: list[str]) -> None:
    assert first_words(*arguments) == groups


def test_json_has_the_lines_of_the_groups_that_are_asked_for() -> None:
    def lines(*arguments: str) -> list[tuple[str, int]]:
        found = [json.loads(line) for line in lag("--format", "json", *arguments)]
        return [(one["group"], one["partition"]) for one in found if one["kind"] == "partition"]

    assert len(lines()) == 12 + 5
    assert lines("--state", "slow") == [(GAINING, 0)]
    assert lines("--state", "stopped") == [(NEVER_COMMITTED, 1), (STOPPED, 0), (STOPPED, 1)]
    assert lines("-p", "--state", "stopped") == [(NEVER_COMMITTED, 1), (STOPPED, 1)]


def test_a_name_that_breaks_lines_stays_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [EVERYTHING])
    (row,) = [line for line in lag() if "script" in line]
    assert row.startswith(HOSTILE.encode("unicode_escape").decode()[:20])
    assert row.isprintable()
    assert "  70  " in row


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["stoped"], 3, "caughtup: no group stoped on this cluster; did you mean stopped?"),
        (["no-such-*"], 3, "caughtup: no group no-such-* on this cluster"),
        (["--state", "rewound"], 3, "none of 5 groups matches"),
    ],
)
def test_what_is_not_there_is_told(arguments: list[str], code: int, said: str) -> None:
    ran = run(*arguments)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (code, "", f"{said}\n")


def test_a_group_that_is_not_there_takes_nothing_from_one_that_is() -> None:
    ran = run(GAINING, "stoped")
    assert (ran.exit_code, len(ran.stdout.splitlines())) == (0, 2)
    assert "no group stoped" in ran.stderr


def test_watching_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        process = subprocess.Popen(
            [*PROGRAM.split(), "--watch", "--every", "0.5"], cwd=ROOT, stdout=file
        )
    try:
        out = tmp_path / "out"
        wait_for("it looks three times", lambda: out.read_text().count("GROUP") >= 3)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_watching_outlives_a_look_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = iter([state(), UserError("the cluster is away"), judged(), KeyboardInterrupt()])

    def look(_: object, __: object) -> ClusterState:
        found = next(looked)
        if isinstance(found, BaseException):
            raise found
        return found

    monkeypatch.setattr(Looks, "look", look)
    monkeypatch.setattr("time.sleep", lambda _: None)
    ran = run("--watch")
    assert (ran.exit_code, ran.stderr) == (0, "caughtup: the cluster is away\n")
    first, second, third = ran.stdout.split("GROUP ")[1:]
    assert first == second
    assert LONG_GROUP in first
    assert LONG_GROUP not in third


def test_of_a_named_application_its_configs_are_shown_with_how_they_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", [EVERYTHING])
    found = run("orders").stdout
    assert re.search(r"orders +num\.standby\.replicas +0 +told", found)
    assert "num.standby.replicas" not in run("orders", "--lagging").stdout
    assert "num.standby.replicas" not in run().stdout
