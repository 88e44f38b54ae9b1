"""The other instances' parts of a view: asked at the same time, and kept while one is slow."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from yarl import URL

from caughtup.agents.web.page.head import InstancePart
from caughtup.agents.web.page.merged import ViewPart, view_part
from caughtup.agents.web.peers import NoAnswerError, Peers
from caughtup.models.sharing import HeldPartitions, Peer

#: The most bytes of a part: 2,000 groups of an overview have about 1 MB, 30,000 of a state 10 MB.
_MOST_BYTES = 64 << 20
#: How long an answer may take in all, how long the first view waits for it, and a view for an
#: instance whose earlier part it has, or that did not answer the last time.
_SECONDS, _FIRST_SECONDS, _SHORTLY_SECONDS = 10.0, 5.0, 0.5
#: The most parts that are kept, and how long one is kept after it was last asked for.
_KEPT, _KEPT_SECONDS = 256, 60.0


class _Kept(NamedTuple):
    part: ViewPart
    at_ms: int


class _Asked:
    """One instance's part of one view: the newest, why there is no newer one, and who is asking."""

    def __init__(self) -> None:
        self.kept: _Kept | None = None
        self.why: str | None = None
        self.asking: asyncio.Task[None] | None = None
        self.wanted_at = 0.0


class PeerViews:
    """Asks the other instances for their parts of a view."""

    def __init__(self, peers: Peers, held: HeldPartitions, clock: Callable[[], int]) -> None:
        self._peers = peers
        self._held = held
        self._clock = clock
        self._asked: dict[tuple[Peer, str], _Asked] = {}

    def close(self) -> None:
        """End the requests under way."""
        for of in self._asked.values():
            if of.asking is not None:
                of.asking.cancel()

    @property
    def are_there(self) -> bool:
        """Whether other instances have groups."""
        return bool(self._held.others)

    async def parts(self, path: URL) -> tuple[list[InstancePart], list[ViewPart]]:
        """Return the other instances, and the parts of those that answer now or did lately.

        ``path``: the view's relative URL.
        """
        counts = Counter(self._held.others.values())
        peers = self._held.peers()
        self._forget_unwanted()
        asked = [self._ask(peer, path) for peer in peers]
        for patient in (False, True):
            waiting = [of for of in asked if _is_awaited(of) is patient]
            tasks = [of.asking for of in waiting if of.asking is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=_FIRST_SECONDS if patient else _SHORTLY_SECONDS)
        instances, parts = [], []
        for peer, of in zip(peers, asked, strict=True):
            if of.kept is not None:
                parts.append(of.kept.part)
            instances.append(
                InstancePart(
                    name=peer.name,
                    address=peer.address,
                    partitions=counts[peer],
                    as_of_ms=None if of.kept is None else of.kept.at_ms,
                    why="it has not answered yet" if _is_awaited(of) else of.why,
                )
            )
        return instances, parts

    def _ask(self, peer: Peer, path: URL) -> _Asked:
        of = self._asked.setdefault((peer, str(path)), _Asked())
        of.wanted_at = time.monotonic()
        if of.asking is None:
            of.asking = asyncio.create_task(self._receive(of, peer, path))
        return of

    async def _receive(self, of: _Asked, peer: Peer, path: URL) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                answer = await self._peers.read(peer, path, _MOST_BYTES)
                part = view_part(answer.body)
            of.kept, of.why = _Kept(part, self._clock()), None
        except (NoAnswerError, msgspec.DecodeError) as error:
            of.why = str(error)
        except TimeoutError:
            of.why = f"it has not answered for {_SECONDS:.0f} s"
        finally:
            of.asking = None

    def _forget_unwanted(self) -> None:
        oldest = time.monotonic() - _KEPT_SECONDS
        by_age = sorted(self._asked, key=lambda key: self._asked[key].wanted_at)
        for key in by_age[: max(0, len(by_age) - _KEPT)]:
            self._drop(key)
        for key in by_age:
            if key in self._asked and self._asked[key].wanted_at < oldest:
                self._drop(key)

    def _drop(self, key: tuple[Peer, str]) -> None:
        of = self._asked.pop(key)
        if of.asking is not None:
            of.asking.cancel()


def _is_awaited(of: _Asked) -> bool:
    """Return whether a view waits for a part: there is neither an earlier one nor a failure."""
    return of.kept is None and of.why is None
