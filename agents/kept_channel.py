"""A channel between services and agents that loses nothing, and the wake-ups of the deciding agent.

Faust stops its own channels while its consumer has no partitions, and empties them at a rebalance.
That suits records that will be read again. We read without Faust's consumer, and only once.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

import faust
from faust.channels import Channel
from mode.utils.queues import FlowControlEvent, ThrowableQueue

T = TypeVar("T")


class KeptChannel(Channel[T]):
    """A channel for one agent. ``maxsize``: the most items that wait in it, 0 for no limit.

    The app can neither stop nor empty its queue. All clones share the queue, so that a restarted
    agent continues where it ended.
    """

    @property
    def queue(self) -> ThrowableQueue[T]:
        """Return the one queue of this channel and its clones."""
        if self._root is not None:
            return self._root.queue
        if self._queue is None:
            always_flowing = FlowControlEvent(initially_suspended=False)
            self._queue = ThrowableQueue(maxsize=self.maxsize or 0, flow_control=always_flowing)
        return self._queue

    def take_waiting(self) -> list[T]:
        """Return the waiting items, without waiting for more."""
        return [self.queue.get_nowait() for _ in range(self.queue.qsize())]

    async def put(self, value: Any) -> None:
        """Put an item into the queue; wait while it is full."""
        await self.queue.put(value)


def kept_channel(app: faust.App, maxsize: int = 0) -> KeptChannel[T]:
    """Make a KeptChannel."""
    return KeptChannel(app, maxsize=maxsize)


class Wakeup(Enum):
    """The reason why a decision may be due.

    ``GROUPS``: a new generation. ``POSITIONS``: reported positions, by which copies may have caught
    up. ``END_OFFSETS``: end offsets for which a generation waits. ``RECREATED``: the topic of
    recommendations was recreated.
    """

    GROUPS = "groups"
    POSITIONS = "positions"
    END_OFFSETS = "end_offsets"
    TIME = "time"
    RECREATED = "recreated"
