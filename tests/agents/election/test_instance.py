"""A process that is dead is known to be, and no living one is taken for dead."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from caughtup.agents.election.instance import Instance

SAY = """
import msgspec
from caughtup.agents.election.instance import Instance
print(msgspec.json.encode(Instance.current()).decode(), flush=True)
input()
"""


def test_a_living_process_is_not_dead_and_a_killed_one_is_even_before_its_parent_asks() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        other = msgspec.json.decode(process.stdout.readline(), type=Instance)
        assert other.pid == process.pid
        assert not other.is_dead()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert other.is_dead()
        process.wait()
        assert other.is_dead()


def test_another_process_that_has_the_id_by_now_does_not_count() -> None:
    me = Instance.current()
    assert not me.is_dead()
    assert me.started is not None
    assert msgspec.structs.replace(me, started=me.started - 1).is_dead()


def test_elsewhere_nothing_is_known_of_a_process() -> None:
    gone = msgspec.structs.replace(Instance.current(), pid=2**22 + 1)
    assert gone.is_dead()
    assert not msgspec.structs.replace(gone, place="another boot").is_dead()
    assert not msgspec.structs.replace(gone, place=None).is_dead()
    assert not msgspec.structs.replace(Instance.current(), pid=2**70).is_dead()


def test_a_process_of_another_user_is_alive() -> None:
    me = Instance.current()
    assert not msgspec.structs.replace(me, pid=1, started=None).is_dead()
