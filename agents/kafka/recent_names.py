"""Names that were noted in the last ten minutes, such as what brokers refused us."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import TypeVar

from aiokafka.errors import ClusterAuthorizationFailedError, KafkaError

from caughtup.agents.kafka.protocol.decoding import explain_failure

_Told = TypeVar("_Told")

#: How long a name counts. What was refused is refused again most likely, and each refusal is a line
#: in the brokers' logs; but rights may be granted at any time.
SECONDS = 600.0
#: The most names; the oldest is forgotten first.
_MOST = 100_000


class RecentNames:
    """The names that were noted in the last ten minutes. ``clock``: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        #: When each was last noted; the newest is the last one.
        self._at: dict[str, float] = {}

    def add(self, name: str) -> None:
        """Note a name now."""
        self._at.pop(name, None)
        self._at[name] = self._clock()
        if len(self._at) > self._most:
            del self._at[next(iter(self._at))]

    def drop(self, name: str) -> None:
        """Forget a name."""
        self._at.pop(name, None)

    def keep_only(self, names: AbstractSet[str]) -> None:
        """Forget all other names."""
        for name in self._at.keys() - names:
            del self._at[name]

    def known(self) -> set[str]:
        """Return all names that are not forgotten, also those that were noted longer ago."""
        return set(self._at)

    def __contains__(self, name: str) -> bool:
        at = self._at.get(name)
        return at is not None and self._clock() - at < SECONDS


async def ask_unless_refused(
    refused: RecentNames,
    what: str,
    ask: Callable[[], Awaitable[_Told]],
    missing: set[str],
    operation: str = "DESCRIBE",
) -> _Told | None:
    """Ask for something of the cluster; if it is not told, add that to ``missing`` and return None.

    What was refused for want of ``operation`` on the cluster is noted in ``refused``, and not asked
    for again for ten minutes.
    """
    if what in refused:
        failure: KafkaError = ClusterAuthorizationFailedError()
    else:
        try:
            return await ask()
        except KafkaError as error:
            failure = error
            if isinstance(error, ClusterAuthorizationFailedError):
                refused.add(what)
    missing.add(f"{what}: {explain_failure(failure, operation)}")
    return None
