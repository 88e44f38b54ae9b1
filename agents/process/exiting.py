"""End a process in which calls into a client library are still running."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

#: The name of threads that run such a call; the process may end before the call returns.
UNAWAITED = "unawaited call"


def exit_process(code: object) -> None:
    """End the process at once with an exit status if an unawaited call is running, else return.

    At a normal exit, OpenSSL's cleanup frees what librdkafka's running threads still use, which
    ended some commands with SIGSEGV after their output was complete.
    """
    if any(thread.name == UNAWAITED for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reading end is closed
                stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
