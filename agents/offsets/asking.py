"""Ask coordinators about all groups, round after round, where ``__consumer_offsets`` is hidden."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.asking.asker import ALL_TYPES, GroupAsker
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.offsets.agent import CaughtUp, Changes, ChannelMark
from caughtup.agents.process.fault_log import RateLimit
from caughtup.agents.process.health import OFFSETS, OFFSETS_PROBE, SHARE_GROUPS, Health
from caughtup.agents.settings import Settings
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

#: What is known less well by asking, with the interval in seconds.
BY_ASKING = (
    "coordinators are asked about every group in {:g} s: commits are up to that old, stalled looks like "
    "stopped, and leaders' decisions may not be comparable"
)
_TIMEOUT_SECONDS = 10.0
#: The share of the interval over which the requests of a round are spread.
_SPREAD = 0.1
#: The least pause between two rounds.
_PAUSE_SECONDS = 0.5
#: A group is assessed as of its last answer until the answer is older than this many intervals.
_INTERVALS_ALLOWED = 3
#: Log lines about failures, and how many of them are remembered; the metrics count all of them.
_FAILURES_A_MINUTE, _MOST_SAID = 10, 1_000
#: The part of the service's readiness that waits for the first answers.
_PART = "groups"
#: The service becomes ready after this many rounds even if a broker has not listed its groups.
_ROUNDS_ALLOWED = 3
#: The most seconds between two of those rounds.
_FIRST_SECONDS = 2.0


class GroupsReader(Service):
    """Asks about every watched group once an interval, and puts batches of changes on a channel.

    ``asked`` is called after each round, to list the log ends: a lag compares the two. The requests of a
    round are spread over a tenth of the interval, since logs grow meanwhile. ``types``: the types of
    groups that are asked about; unless they are all, the others come from the log, whose reader says
    when the service is ready.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        changes: KeptChannel[Changes | CaughtUp | ChannelMark],
        state: ClusterState,
        asked: Callable[[], object],
        types: frozenset[str] = ALL_TYPES,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._changes = changes
        self._watching, self._held = state.watching, state.held
        self._asked = asked
        self._types = types
        self._is_alone = types == ALL_TYPES
        self._probe = OFFSETS_PROBE if self._is_alone else SHARE_GROUPS
        assessments, asked_ms = state.assessments, int(1_000 * settings.ask_interval)
        assessments.asked_allowed_ms = max(
            assessments.asked_allowed_ms, _INTERVALS_ALLOWED * asked_ms
        )
        self._known = AskedGroups()
        self._announced = False
        self._incomplete_rounds = 0
        self._failures = RateLimit(_FAILURES_A_MINUTE)
        #: The failures that were logged: one that goes on is logged again after ten minutes.
        self._said = RecentNames(most=_MOST_SAID)

    @Service.task
    async def _run(self) -> None:
        protocol = ClusterProtocol(aiokafka_config(self._settings), _TIMEOUT_SECONDS)
        asker = GroupAsker(protocol, self._known, self._failed, self._types, self._beat)
        try:
            while not self.should_stop:
                began, sent = time.monotonic(), protocol.connections.requests
                self._beat()
                # One that stands by reads the log, too, but asks nothing beside it.
                if self._is_alone or self._health.standby is None:
                    await self._round(asker)
                    self._health.ask_seconds = time.monotonic() - began
                    self._health.ask_requests += protocol.connections.requests - sent
                    self._health.throttled_seconds = asker.throttled_seconds
                interval = self._settings.ask_interval
                if self._is_alone and not self._announced:
                    interval = min(interval, _FIRST_SECONDS)
                self._rest()  # the interval may be an hour
                await self.sleep(max(began + interval - time.monotonic(), _PAUSE_SECONDS))
        finally:
            self._rest()
            protocol.connections.close()

    def _is_past(self) -> bool:
        """Return whether the service does not know all groups yet."""
        return not (self._announced if self._is_alone else self._health.ready)

    def _beat(self) -> None:
        if self._is_alone:
            self._health.pulses.beat(OFFSETS)

    def _rest(self) -> None:
        if self._is_alone:
            self._health.pulses.rest(OFFSETS)

    async def _round(self, asker: GroupAsker) -> None:
        began_ms = now_ms()
        spread = 0.0 if self._is_past() else _SPREAD * self._settings.ask_interval
        try:
            is_whole = await asker.round(self._watching, self._took, spread, self._held.has_group)
        except KafkaError as error:
            self._failed(str(error))
            if self._is_alone and not self._announced:
                self._health.hinder(_PART, str(error))
            return
        if not self._is_alone:
            self._health.succeeded(self._probe, began_ms)
            return
        self._asked()
        self._incomplete_rounds += not is_whole and asker.has_listed
        may_begin = not self._announced and self._incomplete_rounds >= _ROUNDS_ALLOWED
        if is_whole or may_begin:
            self._health.polled(began_ms, 0)
        if self._announced:
            return
        if is_whole or may_begin:
            self._announced = True
            self._health.hinder(_PART, None)
            await self._changes.put(CaughtUp())
            without = "" if is_whole else f", not about all: {asker.unlisted}"
            log.info("asked about %d groups%s", len(self._known.names()), without)
        else:
            self._health.hinder(_PART, asker.unlisted)

    async def _took(self, asked_ms: int, answered: AbstractSet[str]) -> None:
        """Put what has changed on the channel, with the groups that were answered about."""
        self._beat()
        changes = await asyncio.to_thread(
            Changes.of,
            self._known.take(),
            past=self._is_past(),
            asked=dict.fromkeys(answered, asked_ms),
        )
        await self._changes.put(changes)

    def _failed(self, why: str) -> None:
        self._health.failed(self._probe)
        if why not in self._said and not self._failures.is_exceeded(now_ms()):
            self._said.add(why)
            log.warning("asking about groups: %s; continuing", why)
