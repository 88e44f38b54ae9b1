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
import tempfile
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
from tests.support.forks import Fork
from tests.support.lag_program import EVERYTHING, LONG_GROUP, LONG_TOPIC, MANY, Looks, state
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
PROGRAM = "tests.support.lag_program"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def piped(
    arguments: Sequence[str], into: str, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run the command with its output in a pipe to a shell's command.

    Return its exit status, what the shell's command printed, and what it wrote to standard error.
    """
    known = {**os.environ, "COLUMNS": "20", **(environment or {})}
    with tempfile.TemporaryFile() as errors:
        behind = subprocess.Popen(
            ["bash", "-c", into], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        assert behind.stdin is not None
        fork = Fork(arguments, ROOT, known, [behind.stdin.fileno(), errors.fileno()], PROGRAM)
        out, _ = behind.communicate(timeout=60)
        code = fork.wait(60)
        errors.seek(0)
        return code, out.decode(), errors.read().decode()


@pytest.fixture(scope="module")
def made() -> tuple[ClusterState, ClusterState]:
    """What is looked at, which is only read."""
    return state(), everything()


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, made: tuple[ClusterState, ClusterState]) -> None:
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
    known |= {"TERM": "xterm", **(environment or {})}
    with tempfile.TemporaryFile() as errors:
        fork = Fork(arguments, ROOT, known, [theirs, errors.fileno()], PROGRAM)
        os.close(theirs)
        found = b""
        try:
            while part := os.read(ours, 65536):
                found += part
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(ours)
        code = fork.wait(60)
        errors.seek(0)
        assert (code, errors.read()) == (0, b"")
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
    code, out, errors = piped(["-p"], "head -1")
    assert out.split()[:3] == ["GROUP", "TOPIC", "PARTITION"]
    assert "Traceback" not in errors
    assert "Broken" not in errors
    assert piped(["-p"], f"grep -c '{LONG_GROUP}  {LONG_TOPIC} '") == (0, "12\n", "")
    code, out, _ = piped(["-p"], "awk '$8 == \"stopped\" {print $1, $2, $3, $6}'")
    assert (code, out) == (0, f"{NEVER_COMMITTED} clicks 1 5900\n{STOPPED} clicks 1 4900\n")
    code, out, _ = piped([], "cat -v", {"FORCE_COLOR": "1"})
    assert code == 0
    assert "^[" not in out


def test_a_pipe_of_few_characters_gets_every_line() -> None:
    """Python reads this variable at its start."""
    ran = subprocess.run(
        [sys.executable, "-m", PROGRAM, EVERYTHING],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "20", "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0


@pytest.mark.parametrize("arguments", [[], ["-p"], ["--format", "json"], ["--watch"]])
def test_who_stops_reading_ends_it_without_a_word(arguments: list[str]) -> None:
    code, out, errors = piped([MANY, *arguments], "head -1")
    assert code == 1, "it did not write more than was read"
    assert (errors, len(out.splitlines())) == ("", 1)


def test_a_pipe_has_every_line_however_many_there_are() -> None:
    found = piped([MANY, "--lagging"], f"grep -c '^{LONG_GROUP}-[0-9]*  unknown  '")
    assert found == (0, "3000\n", "")


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
        files = [file.fileno(), sys.__stderr__.fileno()]
        fork = Fork(["--watch", "--every", "0.5"], ROOT, os.environ, files, PROGRAM)
    try:
        out = tmp_path / "out"
        wait_for("it looks three times", lambda: out.read_text().count("GROUP") >= 3)
        os.kill(fork.pid, signal.SIGINT)
        assert fork.wait(30) == 0
    finally:
        if fork.poll() is None:
            os.kill(fork.pid, signal.SIGKILL)


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
