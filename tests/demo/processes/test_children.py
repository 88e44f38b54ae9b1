"""Children and directories that must be gone, whichever way their parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from caughtup.demo.processes.children import Process, Processes
from caughtup.demo.processes.watchdog import end_processes, start_time

# A child that shrugs SIGTERM off, and has a child of its own.
STUBBORN = "trap '' TERM; sleep 300 & echo started $!; wait; wait; sleep 300"
PARENT = """
import sys, time
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


def eventually(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


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
    assert eventually(lambda: all(start_time(pid) is None for pid in pids))
    assert eventually(lambda: not directory.exists())


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "processes.close()"])
def test_a_parent_that_ends_by_itself_leaves_nothing(ending: str) -> None:
    parent, directory, pids = parent_of_children(ending)
    with parent:
        parent.communicate(timeout=20)
    assert eventually(lambda: all(start_time(pid) is None for pid in pids))
    assert eventually(lambda: not directory.exists())


def test_a_parent_killed_while_it_starts_children_leaves_nothing() -> None:
    script = """
from caughtup.demo.processes.children import Processes
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
            assert eventually((directory / "sleeper.log").exists)
            parent.kill()
        assert eventually(lambda directory=directory: not directory.exists())
        assert eventually(lambda directory=directory: not running_in(directory))


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
        assert eventually(lambda: child.exit_code is not None)
        assert child.exit_code == 0
        assert child.log.read_text() == output
        assert child.first_error() == error
        again = processes.start("talker", ["true"])
        assert eventually(lambda: again.exit_code is not None)
        assert again.first_error() == ""


def test_a_program_that_is_not_there_says_so_in_its_log() -> None:
    with Processes() as processes:
        child = processes.start("nobody", ["/nonexistent/program"])
        assert eventually(lambda: child.exit_code is not None)
        assert child.exit_code == 127
        assert "/nonexistent/program" in child.first_error()


def test_terminating_a_child_that_ignores_it_kills_it() -> None:
    with Processes() as processes:
        child = processes.start("stubborn", ["sh", "-c", STUBBORN])
        assert eventually(lambda: b"started" in child.log.read_bytes())
        grandchild = int(child.log.read_text().split()[1])
        child.terminate(timeout_seconds=0.1)
        assert child.exit_code == -signal.SIGKILL
        assert eventually(lambda: start_time(grandchild) is None)
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
            assert eventually(lambda: stranger.poll() is not None)
        finally:
            stranger.kill()
