"""A signal ends the demo wherever it interrupts the program."""

from __future__ import annotations

import subprocess
import sys

#: A story that is interrupted while an object is finalized, where Python drops an exception.
_STORY = """
import os, signal, time
from caughtup.demo.command import Ended, end_on_signals

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        print("still here", flush=True)

end_on_signals()
try:
    Finalized()
    time.sleep(30)
    print("played to its end")
except Ended:
    time.sleep(2)
    print("cleaned up")
"""


def test_a_signal_that_python_drops_is_raised_again_and_never_during_the_cleanup() -> None:
    # A shell that runs the tests in the background ignores Ctrl-C, and so would its children.
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    played = subprocess.run(
        [sys.executable, "-c", script + _STORY],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert played.stderr == ""
    assert played.stdout.split("\n") == ["cleaned up", ""], played
