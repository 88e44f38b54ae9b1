"""Elect the active one among instances with the same settings; the others stand by."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec
from aiokafka.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.instances import (
    ACTIVE,
    TOPIC_PREFIX,
    Assignment,
    OtherInstances,
    ServiceInstance,
    Subscription,
    join_settings,
    read_assignment,
    read_subscriptions,
    setting_digests,
)
from caughtup.agents.election.member import ClassicGroupMember
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.election import elect

log = logging.getLogger(__name__)

PROBE = "group"
_BEAT_SECONDS = 1.0
_RETRY_SECONDS = 0.5
#: A join that takes longer than this is waiting for other members.
_WAITS_SECONDS = 0.2
_LEAVE_SECONDS = 1.0
_FAILURES = (KafkaError, OSError, TimeoutError)


class Election(Service):
    """Keeps this instance in its group, and knows whether it is the active one.

    ``take_over`` is awaited after this instance is elected, before it counts as active; it is
    repeated if it raises UserError. ``before_leaving`` is awaited when the service stops:
    another instance may read records back only once they are on their topics. ``instance``: by
    default, this process. ``reported_caught_up``: whether the group knows that this
    instance has read the topics.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        take_over: Callable[[], Awaitable[None]],
        before_leaving: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        instance: ServiceInstance | None = None,
    ) -> None:
        super().__init__()
        self._group = settings.application_id
        self._health = health
        self._take_over = take_over
        self._before_leaving = before_leaving
        self._clock = clock
        self._member = ClassicGroupMember(aiokafka_config(settings), join_settings(settings))
        self._instance = instance or ServiceInstance.current()
        self._settings = settings
        self._others = OtherInstances(self._member, self._instance)
        self._since_ms = now_ms()
        self._belongs = self._leaving = False
        #: Set when there is something to report before the next heartbeat.
        self._hurry = asyncio.Event()
        #: Whether this instance is elected, as far as it knows; and whether it ever was.
        self._elected = self._was_elected = False
        #: Whether its subscription reported that it has read ``__consumer_offsets`` to the end.
        self.reported_caught_up = False
        self._result: Assignment | None = None
        #: The time (of ``clock``) until which no other instance can be elected.
        self._sure_until = 0.0
        health.standby = "not elected yet"
        health.doubt = self._doubt

    def may_publish(self) -> bool:
        """Return whether this is certainly the active instance."""
        return (
            self._elected
            and self._health.standby is None
            and not self._leaving
            and self._clock() < self._sure_until
        )

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            pause = 0.0
            try:
                if self._belongs:
                    await self._beat()
                else:
                    await self._join()
                pause = _BEAT_SECONDS if self._belongs else 0.0
                self._health.recovered(PROBE)
            except RebalanceInProgressError:
                self._belongs = False
            except (UnknownMemberIdError, IllegalGenerationError):
                self._expelled()
                pause = _WAITS_SECONDS
            except _FAILURES as error:
                self._member.disconnect()
                self._failed(error)
                pause = _RETRY_SECONDS
            if pause and not self.should_stop:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), pause)
            self._hurry.clear()

    async def on_stop(self) -> None:
        """Finish publishing what was sent, then leave the group, so that another takes over."""
        self._leaving = True
        self._hurry.set()
        await self._before_leaving()
        with suppress(*_FAILURES):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._member.leave()
        self._member.close()

    async def _join(self) -> None:
        """Join the group and learn which instance is active; elect it if this is the leader."""
        if not self._member.member_id:
            await self._others.find()
        # Read again for each rebalance: the signing key may be another one meanwhile.
        self._others.own_settings = setting_digests(self._settings)
        subscription = self._subscription()
        joining = self._member.join(msgspec.json.encode(subscription), self._protocols())
        joining_group = asyncio.ensure_future(joining)
        try:
            # Dead members are removed only after joining: an empty group would wait for members.
            while not (await asyncio.wait({joining_group}, timeout=_WAITS_SECONDS))[0]:
                await self._others.remove_dead()
            joined = joining_group.result()
        finally:
            joining_group.cancel()
        assignments = {}
        if joined.leader == joined.member_id:
            subscriptions = read_subscriptions(joined.members)
            self._others.take(subscriptions)
            agreed = msgspec.json.encode(await self._agree(joined.protocol, subscriptions))
            assignments = dict.fromkeys(joined.members, agreed)
        sent_at = self._clock()
        assignment = read_assignment(await self._member.sync(assignments))
        if assignment is None:
            raise KafkaError("the leader of the group sent an assignment that cannot be read")
        self._belongs, self.reported_caught_up = True, subscription.caught_up
        self._sure_until = sent_at + self._member.session_seconds
        await self._apply_result(assignment)
        if joined.leader != joined.member_id:
            with suppress(*_FAILURES):
                await self._others.find()
        self._compare_settings()

    def _protocols(self) -> tuple[str, ...]:
        """Return the protocols to offer, preferred first."""
        return (ACTIVE,)

    def _subscription(self) -> Subscription:
        """Return what this instance sends when it joins."""
        return Subscription(
            self._instance,
            self._elected,
            self._health.ready,
            self._since_ms,
            dict(self._others.own_settings),
        )

    async def _agree(self, protocol: str, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Decide as the group's leader, for all members. Raises KafkaError."""
        del protocol
        active = elect({member: each.candidate() for member, each in subscriptions.items()})
        return Assignment(active, subscriptions[active].instance)

    def _compare_settings(self) -> None:
        """Say which instances have other settings; end if the active one has other topics."""
        differing = self._others.differing
        active = None if self._result is None else self._result.instance.name
        if active is not None and TOPIC_PREFIX in differing.get(active, ()):
            self._health.broken = (
                f"{active} has another {TOPIC_PREFIX}, and is in the group {self._group}, too: "
                "choose another application_id"
            )
        said = "; ".join(f"{name}: {', '.join(own)}" for name, own in differing.items())
        why = f"other instances have other settings: {said}" if said else None
        if why is not None and why != self._health.settings:
            log.warning("%s", why)
        self._health.settings = why

    async def _beat(self) -> None:
        """Send a heartbeat; then join again if a member was removed, or to report being ready."""
        sent_at = self._clock()
        await self._member.beat()
        self._sure_until = sent_at + self._member.session_seconds
        if await self._others.remove_dead() or self._must_report():
            self._belongs = False

    def _must_report(self) -> bool:
        """Return whether to join again, since the subscription is no longer true."""
        return self._health.ready and not self.reported_caught_up and not self._elected

    async def _apply_result(self, result: Assignment) -> None:
        """Apply the result of an election."""
        is_new, self._result = result != self._result, result
        name = result.instance.name
        self._others.note(result.member_id, result.instance)
        if result.member_id == self._member.member_id:
            if not self._elected:
                self._elected = self._was_elected = True
                self.add_future(self._become_active())
        elif self._was_elected:
            # Its pending records were decided as the active one: none may be sent.
            self._health.broken = f"{name} is active: the coordinator removed this instance from the group {self._group}"
        else:
            self._health.standby = f"{name} is active"
            if is_new:
                log.info("standby: %s is active", name)

    async def _become_active(self) -> None:
        while not self.should_stop:
            self._health.standby = "elected, reading back the records that were published"
            try:
                await self._take_over()
            except UserError as error:
                self._health.standby = f"elected, but {error.message}"
                await self.sleep(_RETRY_SECONDS)
            else:
                if self._elected:  # not expelled meanwhile
                    self._health.standby = None
                    log.info("active: %s", self._instance.name)
                return

    def _expelled(self) -> None:
        """Record that the group removed this member, since its heartbeats were late."""
        self._member.forget()
        self._belongs, self._sure_until = False, 0.0
        if self._elected:
            log.warning("the coordinator removed this instance from the group %s", self._group)
            self._elected = False
            self._health.standby = "not elected again yet: its heartbeats were late"

    def _failed(self, error: Exception) -> None:
        if isinstance(error, InconsistentGroupProtocolError):
            why = (
                "other programs use this group, or instances with other workers: choose another "
                "application_id, or the same workers"
            )
        else:
            why = explain_failure(error) if isinstance(error, KafkaError) else str(error)
        if self._health.failed(PROBE) and not self._leaving:
            log.warning("the group %s: %s; trying again", self._group, why)
        if not self._elected and (self._result is None or self._was_elected):
            again = " again" if self._was_elected else ""
            self._health.standby = f"not elected{again} yet: the group {self._group}: {why}"

    def _doubt(self) -> str | None:
        """Return why another instance may be active now; None if none can be."""
        if self._elected and not self._leaving and self._clock() >= self._sure_until:
            return (
                f"its coordinator doesn't answer: another instance of {self._group} may be active"
            )
        return None


async def until_active(service: Service, health: Health, *, cluster_wide: bool = False) -> None:
    """Wait until this instance is active, or until the service has to stop.

    ``cluster_wide``: also wait until it does the cluster-wide work, which belongs to no group.
    """
    while not service.should_stop:
        if health.standby is None and (health.cluster_wide() or not cluster_wide):
            return
        await service.sleep(_WAITS_SECONDS)
