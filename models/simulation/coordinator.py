"""The classic group coordinator in virtual time: joins, syncs, and members that fall silent.

A rebalance waits for all members to join again, which they do after their next heartbeat, or for
the rebalance timeout. A static member that restarts within its session timeout takes its own place.
Source: Kafka's group coordinator (``prepareRebalance``, ``completeJoin``,
``updateStaticMemberThenRebalanceOrCompleteJoin``) and ``AbstractCoordinator`` in its clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Generic

from caughtup.models.simulation.membership import (
    Assignment,
    ClassicMember,
    Decide,
    KnownMember,
    Session,
    Subscription,
    Timings,
    take_over,
)
from caughtup.models.simulation.virtual_time import Event, VirtualTime


class GroupState(StrEnum):
    """The state of the group, by Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicCoordinator(Generic[Subscription, Assignment]):
    """A group's coordinator, and its members' side of joining.

    ``decide`` is called with the leader's member id and each member's subscription. ``completed``
    is called with the generation and the members' ids once the leader has all subscriptions.
    """

    def __init__(
        self,
        time: VirtualTime,
        decide: Decide[Subscription, Assignment],
        timings: Timings,
        completed: Callable[[int, list[str]], None] = lambda _generation, _members: None,
    ) -> None:
        self._time = time
        self._decide = decide
        self._timings = timings
        self._completed = completed
        self._members: dict[str, KnownMember[Subscription, Assignment]] = {}
        self._waiting: Event | None = None
        self._initial_until_ms: int | None = None
        self.state = GroupState.EMPTY
        self.generation = 0
        self.leader: str | None = None

    @property
    def members(self) -> list[str]:
        """Member ids, in the order in which they joined the group."""
        return list(self._members)

    @property
    def stable(self) -> bool:
        """Whether every member has its assignment, and no rebalance goes on."""
        return self.state is GroupState.STABLE

    def resume(
        self,
        members: Iterable[ClassicMember[Subscription, Assignment]],
        generation: int,
        leader: str,
        assignments: Mapping[str, Assignment] | None = None,
    ) -> None:
        """Begin with a stable group of these members, whose sessions start now.

        ``assignments`` are those of static members, by member id.
        """
        for member in members:
            known = self._add(member)
            known.generation = generation
            if member.instance_id is not None:
                known.subscription = member.subscription()
                known.assignment = (assignments or {}).get(member.member_id)
        self.generation, self.leader = generation, leader
        self.state = GroupState.STABLE

    def join(self, member: ClassicMember[Subscription, Assignment]) -> None:
        """Send JoinGroup for a new member, or for one that joins again."""
        self._time.after(self._timings.request_ms, lambda: self._join(member))

    def leave(self, member_id: str) -> None:
        """Send LeaveGroup."""
        self._time.after(self._timings.request_ms, lambda: self._remove(member_id))

    def falls_silent(self, member_id: str) -> None:
        """Expire a member whose process no longer answers, once its session times out.

        A member that waits for the answer to its JoinGroup counts as alive until the answer is
        sent.
        """
        known = self._members.get(member_id)
        if known is not None and not known.has_joined:
            known.session.falls_silent(lambda: self._remove(member_id))

    def speaks_again(self, member_id: str) -> None:
        """Resume a member that was silent and is still in the group."""
        known = self._members[member_id]
        known.session.speaks_again()
        if self.state is GroupState.PREPARING and not known.has_joined:
            self._rejoin_after(known, self._timings.poll_ms)
        elif self.state is GroupState.COMPLETING and member_id == self.leader:
            self._await_decision()
        elif self.state is GroupState.STABLE and known.generation != self.generation:
            self._give_again(known)

    def rejoin_now(self, member_id: str) -> None:
        """Make a member request a rebalance."""
        known = self._members.get(member_id)
        if known is not None and not known.has_joined:
            self._rejoin_after(known, 0)

    def _join(self, member: ClassicMember[Subscription, Assignment]) -> None:
        if not member.answers:
            return
        known = self._members.get(member.member_id) or self._take_over(member)
        new = known is None
        if known is None:
            known = self._add(member)
        elif known.member is not member:
            known.member = member
            if self.state is GroupState.STABLE:
                self._give_again(known)
                return
        known.cancel_rejoin()  # the member learned of the rebalance before this request arrived
        known.session.hear()
        known.subscription, known.has_joined = member.subscription(), True
        if self.state is GroupState.EMPTY:
            self._initial_until_ms = self._time.now_ms + self._timings.rebalance_timeout_ms
            self.state = GroupState.PREPARING
            self._wait_for_more()
        elif self.state is GroupState.PREPARING:
            if self._initial_until_ms is not None and new:
                self._wait_for_more()
            elif self._initial_until_ms is None:
                self._complete_if_all_joined()
        else:
            self._prepare()

    def _add(
        self, member: ClassicMember[Subscription, Assignment]
    ) -> KnownMember[Subscription, Assignment]:
        known: KnownMember[Subscription, Assignment] = KnownMember(
            member, Session(self._time, self._timings)
        )
        self._members[member.member_id] = known
        return known

    def _take_over(
        self, member: ClassicMember[Subscription, Assignment]
    ) -> KnownMember[Subscription, Assignment] | None:
        """Let a static member that restarts take its own place, and return its entry, or None."""
        taken = take_over(self._members, member)
        if taken is None:
            return None
        former_id, known = taken
        if self.leader == former_id:
            self.leader = member.member_id
        return known

    def _give_again(self, known: KnownMember[Subscription, Assignment]) -> None:
        """Answer a static member of a stable group with its assignment, without a rebalance."""
        known.session.hear()
        known.subscription = known.member.subscription()
        member, generation, assignment = known.member, self.generation, known.assignment

        def synced() -> None:
            if generation == self.generation and member.answers and assignment is not None:
                known.generation = generation
                member.assigned(generation, assignment)

        self._time.after(2 * self._timings.request_ms, synced)

    def _wait_for_more(self) -> None:
        """Wait the initial delay once more, as after each new member of an empty group."""
        if self._waiting is not None:
            self._waiting.cancel()
        until_ms = self._time.now_ms + self._timings.initial_rebalance_delay_ms
        self._waiting = self._time.at(
            min(until_ms, self._initial_until_ms or until_ms), self._complete
        )

    def _prepare(self) -> None:
        """Begin a rebalance, of which members learn by their next heartbeat.

        Members that wait for the leader's decision learn of it at once, from the answer to
        SyncGroup.
        """
        in_sync = self.state is GroupState.COMPLETING
        self.state = GroupState.PREPARING
        self._initial_until_ms = None
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self._time.after(self._timings.rebalance_timeout_ms, self._complete)
        interval = self._timings.heartbeat_interval_ms
        for known in self._members.values():
            if not known.has_joined:
                beat_in_ms = (
                    0 if in_sync else -(self._time.now_ms - known.session.heard_ms) % interval
                )
                self._rejoin_after(known, beat_in_ms + self._timings.poll_ms)
        self._complete_if_all_joined()

    def _rejoin_after(self, known: KnownMember[Subscription, Assignment], delay_ms: int) -> None:
        due_ms = self._time.now_ms + delay_ms
        if known.rejoin is None or known.rejoin.at_ms > due_ms:
            known.cancel_rejoin()
            known.rejoin = self._time.at(due_ms, lambda: self._rejoin(known))

    def _rejoin(self, known: KnownMember[Subscription, Assignment]) -> None:
        known.rejoin = None
        if known.member.answers:
            known.member.prepare()
            self.join(known.member)

    def _complete_if_all_joined(self) -> None:
        if all(known.has_joined for known in self._members.values()):
            self._complete()

    def _complete(self) -> None:
        """End the wait: remove missing members, unless static, and let the leader decide."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._initial_until_ms = None
        for member_id, known in list(self._members.items()):
            if not known.has_joined and known.member.instance_id is None:
                self._forget(member_id)
        if not self._members:
            self.state, self.leader = GroupState.EMPTY, None
            return
        joined = [name for name, known in self._members.items() if known.has_joined]
        if not joined:  # only static members are left, until their sessions expire
            self._waiting = self._time.after(self._timings.rebalance_timeout_ms, self._complete)
            return
        self.state = GroupState.COMPLETING
        self.generation += 1
        if self.leader not in joined:
            self.leader = joined[0]
        for member_id, known in self._members.items():
            if not known.has_joined:
                continue
            known.has_joined = False
            known.session.hear()
            if not known.member.answers:
                self.falls_silent(member_id)
        self._completed(self.generation, list(self._members))
        self._await_decision()

    def _await_decision(self) -> None:
        """Wait for the leader, which gets the subscriptions, decides, and sends SyncGroup."""
        generation, leader = self.generation, self.leader or ""
        subscriptions = {
            name: known.subscription
            for name, known in self._members.items()
            if known.subscription is not None
        }
        timings = self._timings
        self._time.after(
            2 * timings.request_ms + timings.decide_ms,
            lambda: self._sync(generation, leader, subscriptions),
        )

    def _sync(
        self, generation: int, leader: str, subscriptions: Mapping[str, Subscription]
    ) -> None:
        """Adopt the leader's decision, unless another rebalance has begun or the leader is gone."""
        known = self._members.get(leader)
        if (
            self.state is not GroupState.COMPLETING
            or generation != self.generation
            or known is None
            or not known.member.answers
        ):
            return
        self.state = GroupState.STABLE
        assignments = self._decide(leader, subscriptions)
        for name, known in list(self._members.items()):
            known.assignment = assignments.get(name)
            if name in assignments and known.member.answers:
                known.session.hear()
                known.generation = generation
                known.member.assigned(generation, assignments[name])

    def _remove(self, member_id: str) -> None:
        if member_id not in self._members:
            return
        self._forget(member_id)
        if not self._members:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
            self.state, self.leader = GroupState.EMPTY, None
        elif self.state in {GroupState.STABLE, GroupState.COMPLETING}:
            self._prepare()
        elif self._initial_until_ms is None:
            self._complete_if_all_joined()

    def _forget(self, member_id: str) -> None:
        known = self._members.pop(member_id)
        known.session.end()
        known.cancel_rejoin()
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
