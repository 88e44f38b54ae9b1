"""A process whose clock is off: a library that is loaded before libc's answers in its place.

libfaketime won't do, with which a broker never gets through its start: it also takes over how
threads wait. The monotonic clock stays as it is.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMPILER = shutil.which("cc")

#: Java's clock and Python's are clock_gettime.
_CLOCK = """\
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    const char *off = getenv("CLOCK_OFF_SECONDS");
    if (!failed && off && id == CLOCK_REALTIME) at->tv_sec += atol(off);
    return failed;
}
"""


def another_clock(seconds: int, directory: Path) -> dict[str, str]:
    """Return the environment of a process whose clock is off by so many seconds."""
    source, library = directory / "clock.c", directory / "clock.so"
    if not library.exists():
        source.write_text(_CLOCK)
        assert COMPILER is not None
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_OFF_SECONDS": str(seconds)}
