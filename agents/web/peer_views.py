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
from caughtup.agents.web.page.merged import ViewPart, figures_age_ms, view_part
from caughtup.agents.web.peers import NoAnswerError, Peers
from caughtup.models.sharing import HeldPartitions, Peer

#: The most bytes of a part: 2,000 groups of an overview have about 1 MB, 30,000 of a state 10 MB.
_MOST_BYTES, _MOST_BYTES_OF_ALL_GROUPS = 8 << 20, 64 << 20
_OF_ALL_GROUPS = frozenset({"/api/state", "/api/view?view=connect"})
#: How long an answer may take in all, how long the first view waits for it, and a view for an
#: instance whose earlier part it has, or that did not answer the last time.
_SECONDS, _FIRST_SECONDS, _SHORTLY_SECONDS = 10.0, 5.0, 0.5
#: The most parts that are kept, in number and bytes, and how long after one was last asked for.
_KEPT, _KEPT_BYTES, _KEPT_SECONDS = 256, 256 << 20, 60.0
#: The most characters of an address, and of a reason, that are shown.
_ADDRESS_CHARACTERS, _REASON_CHARACTERS = 320, 300


class _Kept(NamedTuple):
    part: ViewPart
    size: int
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
        #: Those that did not answer the last time, whichever view.
        self._silent: set[Peer] = set()

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
        shortly, patiently = set[asyncio.Task[None]](), set[asyncio.Task[None]]()
        for peer, of in zip(peers, asked, strict=True):
            if of.asking is not None:
                is_first = _is_awaited(of) and peer not in self._silent
                (patiently if is_first else shortly).add(of.asking)
        for tasks, seconds in ((shortly, _SHORTLY_SECONDS), (patiently, _FIRST_SECONDS)):
            if tasks:
                await asyncio.wait(tasks, timeout=seconds)
        instances, parts = [], []
        for peer, of in zip(peers, asked, strict=True):
            if of.kept is not None:
                parts.append(of.kept.part)
            instances.append(
                InstancePart(
                    name=peer.label,
                    address=peer.address[:_ADDRESS_CHARACTERS],
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
                is_large = str(path) in _OF_ALL_GROUPS
                most = _MOST_BYTES_OF_ALL_GROUPS if is_large else _MOST_BYTES
                answer = await self._peers.read(peer, path, most)
                part = view_part(answer.body)
        except (NoAnswerError, msgspec.DecodeError) as error:
            of.why = str(error)
        except TimeoutError:
            of.why = f"it has not answered for {_SECONDS:.0f} s"
        else:
            as_of_ms = self._clock() - figures_age_ms(part)
            of.kept, of.why = _Kept(part, len(answer.body), as_of_ms), _unready(part)
            self._silent.discard(peer)
            return
        finally:
            of.asking = None
        self._silent.add(peer)

    def _forget_unwanted(self) -> None:
        self._silent.intersection_update(self._held.peers())
        oldest = time.monotonic() - _KEPT_SECONDS
        newest_first = sorted(self._asked, key=lambda key: -self._asked[key].wanted_at)
        size = 0
        for number, key in enumerate(newest_first, 1):
            of = self._asked[key]
            size += 0 if of.kept is None else of.kept.size
            if number > _KEPT or size > _KEPT_BYTES or of.wanted_at < oldest:
                self._drop(key)

    def _drop(self, key: tuple[Peer, str]) -> None:
        of = self._asked.pop(key)
        if of.asking is not None:
            of.asking.cancel()


def _unready(part: ViewPart) -> str | None:
    """Return why an instance is not ready, None if it is: its figures may be old."""
    if part.ready:
        return None
    return f"it is not ready: {'; '.join(part.unready)[:_REASON_CHARACTERS]}"


def _is_awaited(of: _Asked) -> bool:
    """Return whether a view waits for a part: there is neither an earlier one nor a failure."""
    return of.kept is None and of.why is None
