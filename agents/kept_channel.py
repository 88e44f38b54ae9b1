"""A channel between services and agents that loses nothing, and that flows from the start.

Faust's own channels flow while its consumer has partitions, and are emptied when they are dealt
anew. That is right for records that come again; what we have read doesn't, and nothing is dealt.
"""

from __future__ import annotations

from typing import Any

import faust
from faust.channels import Channel
from mode.utils.queues import FlowControlEvent, ThrowableQueue


class KeptChannel(Channel[Any]):
    """A channel for one agent. ``maxsize``: how many items wait in it at most, 0 for no limit.

    Its queue is its own, not the app's to stop or to empty, and the same for everybody who reads
    it: an agent that is started anew goes on where the one before it ended.
    """

    @property
    def queue(self) -> ThrowableQueue[Any]:
        """Return the one queue of this channel and its clones."""
        if self._root is not None:
            return self._root.queue
        if self._queue is None:
            always_flowing = FlowControlEvent(initially_suspended=False)
            self._queue = ThrowableQueue(maxsize=self.maxsize or 0, flow_control=always_flowing)
        return self._queue

    def take_waiting(self) -> list[Any]:
        """Return all that waits in it now, without waiting for more."""
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]

    async def put(self, value: Any) -> None:
        """Put an item into it; wait while it is full."""
        await self.queue.put(value)


def kept_channel(app: faust.App, maxsize: int = 0) -> KeptChannel:
    """Make a channel that keeps what is in it."""
    return KeptChannel(app, maxsize=maxsize)
