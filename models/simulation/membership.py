"""What a group's coordinator needs to know of its members, and how long things take in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Timings:
    """How long things take in a group, in ms; the first five are Kafka's own configs.

    ``request_ms`` is one request and its answer, ``poll_ms`` how long a member that has learned of
    a rebalance goes on before it joins again, and ``decide_ms`` what the leader's decision takes.
    """

    heartbeat_interval_ms: int = 3_000
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    initial_rebalance_delay_ms: int = 3_000
    request_ms: int = 2
    poll_ms: int = 50
    decide_ms: int = 5


class Member(Protocol):
    """What the coordinator needs of a member.

    ``answers`` is whether its process runs, so that it sends heartbeats. ``instance_id`` is its
    ``group.instance.id``, None of a member that isn't static.
    """

    member_id: str
    instance_id: str | None

    @property
    def answers(self) -> bool:
        """Whether heartbeats are sent."""

    def prepare(self) -> None:
        """Get ready to join again, just before the member says what it has."""

    def subscription(self) -> Any:
        """Return what the member says of itself in JoinGroup."""

    def assigned(self, generation: int, assignment: Any) -> None:
        """Adopt what the leader decided for it."""


#: What the leader decides: subscriptions in their members' order → assignments by member id.
Decide = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
