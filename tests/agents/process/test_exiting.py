"""A process ends with its exit status, whatever its threads are at."""

from __future__ import annotations

import subprocess
import sys

import pytest

from caughtup.agents.process.exiting import exit_process

PROGRAM = """
import atexit, sys, threading, time
from caughtup.agents.process.exiting import UNAWAITED, exit_process
atexit.register(print, "cleaned up")
threading.Thread(target=time.sleep, args=(30,), name={name}, daemon=True).start()
print("said")
exit_process({code})
sys.exit(7)
"""


def ran(name: str, code: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name, code=code)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(("code", "status"), [("3", 3), ("None", 0), ("'a message'", 1)])
def test_it_ends_at_once_where_nobody_waits_for_a_call(code: str, status: int) -> None:
    assert ran("UNAWAITED", code) == (status, "said\n")


def test_it_ends_as_others_do_where_there_is_none() -> None:
    assert ran("'another'", "3") == (7, "said\ncleaned up\n")
    exit_process(3)
