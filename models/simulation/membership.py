"""A classic group's members, their sessions with the coordinator, and its timings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from caughtup.models.simulation.virtual_time import Event, VirtualTime

Subscription = TypeVar("Subscription")
Assignment = TypeVar("Assignment")
Subscription_co = TypeVar("Subscription_co", covariant=True)
Assignment_contra = TypeVar("Assignment_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Timings:
    """The times that things take in a group, in ms; the first four are Kafka's own configs.

    ``request_ms`` is one request and its answer, ``poll_ms`` the time from when a member learns of
    a rebalance until it joins again, and ``decide_ms`` the time of the leader's decision.
    """

    heartbeat_interval_ms: int = 3_000
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    initial_rebalance_delay_ms: int = 3_000
    request_ms: int = 2
    poll_ms: int = 50
    decide_ms: int = 5


class ClassicMember(Protocol[Subscription_co, Assignment_contra]):
    """The interface of a member to the coordinator.

    ``answers`` is whether its process runs, so that it sends heartbeats. ``instance_id`` is its
    ``group.instance.id``, None if it isn't static.
    """

    member_id: str
    instance_id: str | None

    @property
    def answers(self) -> bool:
        """Whether the member sends heartbeats."""

    def prepare(self) -> None:
        """Get ready to join again, just before the subscription is read."""

    def subscription(self) -> Subscription_co:
        """Return the member's subscription for JoinGroup."""

    def assigned(self, generation: int, assignment: Assignment_contra) -> None:
        """Adopt the member's assignment."""


#: Decides for a leader: its member id, and subscriptions by member id → assignments by member id.
Decide = Callable[[str, Mapping[str, Subscription]], Mapping[str, Assignment]]


class Session:
    """A session, which lasts while its member sends heartbeats.

    ``heard_ms`` is the time of the last certain contact; from then on a heartbeat follows every
    interval. Heartbeats are no events of their own: only their end is.
    """

    def __init__(self, time: VirtualTime, timings: Timings) -> None:
        self._time = time
        self._timings = timings
        self._expiry: Event | None = None
        self.heard_ms = time.now_ms

    def hear(self) -> None:
        """Record a contact with the member now."""
        self.heard_ms = self._time.now_ms

    def falls_silent(self, expired: Callable[[], None]) -> None:
        """Call ``expired`` a session timeout after the last heartbeat, which has just been sent."""
        self.end()
        interval = self._timings.heartbeat_interval_ms
        beats = (self._time.now_ms - self.heard_ms) // interval
        last_ms = self.heard_ms + beats * interval
        self._expiry = self._time.at(last_ms + self._timings.session_timeout_ms, expired)

    def speaks_again(self) -> None:
        """Continue the session of a member that was silent and not yet removed."""
        self.end()
        self.hear()

    def end(self) -> None:
        """Cancel the expiry, if there is one."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None


@dataclass(slots=True)
class KnownMember(Generic[Subscription, Assignment]):
    """A member as its coordinator knows it.

    ``subscription`` is that of its last JoinGroup, and ``assignment`` the leader's last decision
    for it, which is sent again to a static member, or to one that was paused. ``generation`` is the
    last that the member knows.
    """

    member: ClassicMember[Subscription, Assignment]
    session: Session
    subscription: Subscription | None = None
    assignment: Assignment | None = None
    generation: int = 0
    has_joined: bool = False
    rejoin: Event | None = None

    def cancel_rejoin(self) -> None:
        """Cancel the member's next JoinGroup, if there is one."""
        if self.rejoin is not None:
            self.rejoin.cancel()
            self.rejoin = None


def take_over(
    members: dict[str, KnownMember[Subscription, Assignment]],
    member: ClassicMember[Subscription, Assignment],
) -> tuple[str, KnownMember[Subscription, Assignment]] | None:
    """Put a static member that restarts in the place of the one with its instance id.

    Returns the id that it had and what is known of it; None if the group has no such member, or the
    member isn't static. The coordinator has its members in a hash table: the new id, which comes
    last here, has another place there.
    """
    if member.instance_id is None:
        return None
    for former_id, known in members.items():
        if known.member.instance_id == member.instance_id:
            known.session.end()
            del members[former_id]
            members[member.member_id] = known
            return former_id, known
    return None
