"""Children and directories that must be gone, whichever way their parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from caughtup.demo.processes.children import Process, Processes
from caughtup.demo.processes.watchdog import end_processes, start_time
from tests.support.service import wait_for

# A child that shrugs SIGTERM off, and has a child of its own.
STUBBORN = "trap '' TERM; sleep 300 & echo started $!; wait; wait; sleep 300"
SECONDS = 20
PARENT = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
from caughtup.demo.processes.children import Processes
processes = Processes()
children = [processes.start("plain", ["sleep", "300"]),
            processes.start("stubborn", ["sh", "-c", sys.argv[1]])]
while b"started" not in children[1].log.read_bytes():
    time.sleep(0.01)
grandchild = children[1].log.read_text().split()[1]
print(processes.directory, *(child.pid for child in children), grandchild, flush=True)
{ending}
"""


def parent_of_children(ending: str) -> tuple[subprocess.Popen[str], Path, list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(ending=ending), STUBBORN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    directory, *pids = parent.stdout.readline().split()
    assert len(pids) == 3
    return parent, Path(directory), [int(pid) for pid in pids]


@pytest.mark.parametrize(
    "signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
)
def test_a_parent_ended_by_a_signal_leaves_nothing(signal_number: signal.Signals) -> None:
    parent, directory, pids = parent_of_children("time.sleep(300)")
    with parent:
        assert directory.is_dir()
        assert all(start_time(pid) is not None for pid in pids)
        parent.send_signal(signal_number)
        parent.communicate(timeout=20)
    wait_for("they have ended", lambda: all(start_time(pid) is None for pid in pids), SECONDS)
    wait_for("the folder is gone", lambda: not directory.exists(), SECONDS)


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "processes.close()"])
def test_a_parent_that_ends_by_itself_leaves_nothing(ending: str) -> None:
    parent, directory, pids = parent_of_children(ending)
    with parent:
        parent.communicate(timeout=20)
    wait_for("they have ended", lambda: all(start_time(pid) is None for pid in pids), SECONDS)
    wait_for("the folder is gone", lambda: not directory.exists(), SECONDS)


def test_a_parent_killed_while_it_starts_children_leaves_nothing() -> None:
    script = """
from caughtup.demo.processes.children import Processes
from tests.support.service import wait_for
processes = Processes()
print(processes.directory, flush=True)
while True:
    processes.start("sleeper", ["sleep", "301.5"])
"""
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout is not None
            directory = Path(parent.stdout.readline().strip())
            wait_for("it is being started", (directory / "sleeper.log").exists, SECONDS)
            parent.kill()
        wait_for("the folder is gone", lambda at=directory: not at.exists(), SECONDS)
        wait_for("nothing runs in it", lambda at=directory: not running_in(at), SECONDS)


def running_in(directory: Path) -> list[str]:
    """Process ids whose working directory is, or was, the given one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd")
        except OSError:
            continue
        if where.removesuffix(" (deleted)") == str(directory):
            found.append(process.name)
    return found


def test_closing_ends_the_children_and_removes_the_directory() -> None:
    with Processes() as processes:
        child = processes.start("sleeper", ["sleep", "300"])
        assert child.exit_code is None
        assert child.log.parent == processes.directory
    assert child.exit_code == -signal.SIGTERM
    assert not processes.directory.exists()
    processes.close()


JAVA_LOG = """\
09:58:44 INFO Nothing yet
09:58:44 ERROR Exiting due to an exception. (Kafka$)
org.apache.kafka.common.KafkaException: cannot bind to 127.0.0.1:9092
\tat kafka.Acceptor.open(Acceptor.java:1)
Caused by: java.net.BindException: Address already in use
09:58:45 INFO Stopped because of RejectedExecutionException (B)
09:58:45 ERROR A consequence (B)
java.io.IOException: about the consequence
"""


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (
            JAVA_LOG,
            (
                "Exiting due to an exception. (Kafka$): "
                "org.apache.kafka.common.KafkaException: cannot bind to 127.0.0.1:9092"
            ),
        ),
        (
            'Exception in thread "main" java.lang.NoClassDefFoundError: a/B\n\tat C.main(C.java)\n',
            "java.lang.NoClassDefFoundError: a/B",
        ),
        ("first\n\nlast\n\n", "last"),
        ("", ""),
    ],
)
def test_output_goes_to_the_log_and_the_first_error_is_found_in_it(output: str, error: str) -> None:
    with Processes() as processes:
        child = processes.start("talker", ["printf", "%s", output])
        wait_for("it has ended", lambda: child.exit_code is not None, SECONDS)
        assert child.exit_code == 0
        assert child.log.read_text() == output
        assert child.first_error() == error
        again = processes.start("talker", ["true"])
        wait_for("it has ended", lambda: again.exit_code is not None, SECONDS)
        assert again.first_error() == ""


def test_a_program_that_is_not_there_says_so_in_its_log() -> None:
    with Processes() as processes:
        child = processes.start("nobody", ["/nonexistent/program"])
        wait_for("it has ended", lambda: child.exit_code is not None, SECONDS)
        assert child.exit_code == 127
        assert "/nonexistent/program" in child.first_error()


def test_terminating_a_child_that_ignores_it_kills_it() -> None:
    with Processes() as processes:
        child = processes.start("stubborn", ["sh", "-c", STUBBORN])
        wait_for("it has started", lambda: b"started" in child.log.read_bytes(), SECONDS)
        grandchild = int(child.log.read_text().split()[1])
        child.terminate(timeout_seconds=0.1)
        assert child.exit_code == -signal.SIGKILL
        wait_for("its child has ended", lambda: start_time(grandchild) is None, SECONDS)
        assert_ending_again_does_nothing(child)


def assert_ending_again_does_nothing(child: Process) -> None:
    code = child.exit_code
    child.terminate()
    child.kill()
    assert child.exit_code == code


def test_a_process_whose_id_was_given_anew_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as stranger:
        try:
            end_processes({stranger.pid: "1"})
            assert stranger.poll() is None
            when = start_time(stranger.pid)
            assert when is not None
            end_processes({stranger.pid: when})
            wait_for("it has ended", lambda: stranger.poll() is not None, SECONDS)
        finally:
            stranger.kill()


CHOOSING = """
import sys
from caughtup.demo.processes.children import free_ports
print(*(port for _ in range(50) for port in free_ports(2)), flush=True)
sys.stdin.read()
"""


def test_processes_that_live_at_once_choose_no_port_twice() -> None:
    """Of 800 among some 12,700 ports, 25 would be chosen twice by chance."""
    choosing = [
        subprocess.Popen(
            [sys.executable, "-c", CHOOSING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    try:
        chosen = [
            int(port)
            for one in choosing
            if one.stdout is not None
            for port in one.stdout.readline().split()
        ]
    finally:
        for one in choosing:
            one.communicate()
    assert len(chosen) == 800
    assert len(set(chosen)) == len(chosen)
