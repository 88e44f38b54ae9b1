"""Ask coordinators by which assignors they assign next: for the service's page, and for a look."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from aiokafka.errors import GroupAuthorizationFailedError, KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.described.assignors import next_assignor
from caughtup.agents.kafka.recent_names import RecentNames
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "assignors"
#: The pause between two rounds (s), the groups of one, and how long an answer counts (ms).
_INTERVAL_SECONDS = 5.0
_MOST_GROUPS = 50
_AGAIN_MS = 60_000
TIMEOUT_SECONDS = 5.0


async def ask_for_assignors(
    protocol: ClusterProtocol,
    state: ClusterState,
    groups: Iterable[str],
    refused: RecentNames | None = None,
) -> None:
    """Note the assignors of those groups that a coordinator assigns; without an answer, none.

    A group that we may not describe has none: it is noted in ``refused``, and those that were are not
    asked about. Raises KafkaError if no broker can be reached.
    """
    refused = RecentNames() if refused is None else refused
    await protocol.brokers()
    for group in groups:
        if group in refused:
            continue
        streams = group in state.groups.streams
        if not streams and group not in state.groups.consumer:
            continue
        name = None
        try:
            name = await next_assignor(protocol.connections, group, streams=streams)
        except KafkaError as error:
            if isinstance(error, GroupAuthorizationFailedError):
                refused.add(group)
            log.debug("the assignor of %s: %s", group, error)
        state.group_decisions.apply_next_assignor(group, name)


class AssignorsProbe(Service):
    """Asks for the assignor of each group that a coordinator assigns, each minute and a few at a time."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings, health: Health, state: ClusterState) -> None:
        super().__init__()
        self._config = aiokafka_config(settings)
        self._health = health
        self._state = state
        #: When each group was asked about last (ms).
        self._asked_ms: dict[str, int] = {}
        self._refused = RecentNames()

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                await self._round()
            await self.sleep(_INTERVAL_SECONDS)

    async def _round(self) -> None:
        now, known = now_ms(), self._state.groups
        groups = sorted({*known.consumer, *known.streams})
        self._asked_ms = {one: self._asked_ms.get(one, 0) for one in groups}
        due = [one for one in groups if not 0 <= now - self._asked_ms[one] < _AGAIN_MS]
        due = sorted(due, key=lambda one: (self._asked_ms[one], one))[:_MOST_GROUPS]
        if not due:
            self._health.succeeded(PROBE, now)
            return
        self._asked_ms.update(dict.fromkeys(due, now))
        try:
            async with ClusterProtocol(self._config, TIMEOUT_SECONDS) as protocol:
                await ask_for_assignors(protocol, self._state, due, self._refused)
        except (KafkaError, OSError, TimeoutError) as error:
            self._failed(error)
            return
        self._health.succeeded(PROBE, now_ms())

    def _failed(self, error: Exception) -> None:
        if self._health.failed(PROBE):
            log.warning("asking for assignors: %s", str(error) or type(error).__name__)
