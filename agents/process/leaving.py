"""Ends a process in which a client library still has threads at work."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

#: The name of threads whose calls into a client library nobody waits for.
UNAWAITED = "nobody waits for it"


def leave(code: object) -> None:
    """End the process with an exit status, if calls that nobody waits for are still on.

    librdkafka's threads go on meanwhile, and OpenSSL's cleanup at the end of a process takes from
    under them what they use, which ended some commands with SIGSEGV after they had said all.
    """
    if any(thread.name == UNAWAITED for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # whoever read it has gone
                stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
