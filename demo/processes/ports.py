"""Free TCP ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

_LOWEST = 20_000
# The system's own: property tests seed Python's, and two processes would choose the same ports.
_RANDOM = random.SystemRandom()
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 on which nothing listens.

    They lie below the range that the kernel takes outgoing connections' ports from, so a server
    finds its port still free seconds later, and again when it is restarted.
    """
    highest = _first_ephemeral_port() - 1
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            wanted = _RANDOM.randint(_LOWEST, highest) if highest > _LOWEST else 0
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            ports.append(candidate.getsockname()[1])
        return ports


def _first_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768
