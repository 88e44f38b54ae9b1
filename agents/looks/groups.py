"""Read groups and their commits once, from the log or by asking their coordinators."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase

from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka import first_contact
from caughtup.agents.kafka.asking.asker import ALL_TYPES, NOT_IN_LOG, GroupAsker
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.partition_leaders import LogPartition
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.permissions import READ_OFFSETS
from caughtup.models.polls.asked import AskedGroups
from caughtup.models.polls.batch import Batch, decode_records, in_parts
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import FramedRecords
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

#: The most records applied at once, so that each group is seen at least that often.
_POLL_RECORDS = 10_000
#: Without an answer the cluster is out of reach.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1
#: The most problems with groups that are told one by one.
_MOST_PROBLEMS = 5


class GroupsLook:
    """Brings the groups of a state up to date: each call reads what is new since the last one.

    ``groups`` are those whose last generation is compared with what their leaders decided.
    ``every_generation``: also apply each group's older generations that the log still has.
    """

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        groups: frozenset[str],
        *,
        every_generation: bool,
    ) -> None:
        self._settings = settings
        self._state = state
        self._groups = groups
        self._every_generation = every_generation
        self._known = AskedGroups()
        #: How far each partition of the log is read.
        self.partitions: dict[int, LogPartition] = {}

    def read(self, progress: Progress) -> None:
        """Read the groups as they are now. Raises UserError."""
        try:
            asyncio.run(self._read(progress))
        except TopicAuthorizationFailedError as error:
            raise UserError(
                f"cannot read {CONSUMER_OFFSETS} ({error}): allow READ on the topic; "
                "`caughtup check` names all that is missing"
            ) from None
        except (KafkaError, TimeoutError) as error:
            raise first_contact.unreachable(self._settings, None) from error

    async def _read(self, progress: Progress) -> None:
        reads_log = self._settings.source != "ask"
        if reads_log:
            await self._read_log(progress)
        await self._ask(progress, NOT_IN_LOG if reads_log else ALL_TYPES)

    async def _read_log(self, progress: Progress) -> None:
        """Read the records since the last call, up to the present end of the log."""
        limit = asyncio.timeout(_PATIENCE_SECONDS)
        async with limit, OffsetLog(self._settings, self.partitions) as offset_log:
            await _open(offset_log)
            left = offset_log.unread_at_open()
            with progress.task(f"reading {CONSUMER_OFFSETS}", left) as advance:

                async def take(batches: list[Batch], _: int) -> None:
                    nonlocal left
                    limit.reschedule(asyncio.get_running_loop().time() + _PATIENCE_SECONDS)
                    for batch in batches:
                        self._state.apply_batch(batch, now_ms(), compared=self._groups)
                    before, left = left, offset_log.unread_at_open()
                    advance(before - left)

                await offset_log.read_to_open_end(self._decode, take)

    def _decode(self, records: FramedRecords) -> list[Batch]:
        if self._every_generation or self._groups:
            groups = None if self._every_generation else self._groups
            parts = split_generations(records, _POLL_RECORDS, groups)
        else:
            parts = in_parts(records, _POLL_RECORDS)
        return [decode_records(part) for part in parts]

    def _is_meant(self, group: str) -> bool:
        return any(group == name or fnmatchcase(group, name) for name in self._groups)

    async def _ask(self, progress: Progress, types: frozenset[str]) -> None:
        """Ask the coordinators about all groups of some types."""
        state, problems = self._state, list[str]()
        async with ClusterProtocol(aiokafka_config(self._settings)) as protocol:
            asker = GroupAsker(protocol, self._known, problems.append, types)
            with progress.task("asking about groups", None) as advance:

                async def took(asked_ms: int, answered: AbstractSet[str]) -> None:
                    state.apply_batch(self._known.take(), asked_ms, compared=self._groups)
                    state.asked_ms.update(dict.fromkeys(answered, asked_ms))
                    advance(len(answered))

                await asker.round(state.watching, took)
        if types != ALL_TYPES:
            for problem in problems:
                log.debug("asking about share groups: %s", problem)
            return
        known = self._known.names()
        if problems and not known:
            raise UserError(f"cannot ask about groups: {problems[0]}")
        if not known and not asker.left_out:
            raise UserError(
                f"no group is listed: allow {READ_OFFSETS}, or DESCRIBE on groups; `caughtup check` "
                "names all that is missing"
            )
        if self._groups and not any(map(self._is_meant, known)):
            # Whether they are there is not known, which is not to say that they aren't.
            unanswered = sorted(filter(self._is_meant, asker.unanswered))
            about = [one for one in problems if unanswered and repr(unanswered[0])[1:-1] in one]
            why = next(iter(about), asker.unlisted or (problems[0] if unanswered else ""))
            if why:
                raise UserError(f"cannot ask about {', '.join(sorted(self._groups))}: {why}")
        for problem in problems[:_MOST_PROBLEMS]:
            log.warning("asking about groups: %s", problem)
        if more := len(problems[_MOST_PROBLEMS:]):
            log.warning("asking about groups: and %d more problems", more)


async def _open(offset_log: OffsetLog) -> None:
    """Open a log; retry while a partition's leader changes, as it does on a new topic."""
    while True:
        try:
            await offset_log.open()
        except (LeaderNotAvailableError, NotLeaderForPartitionError):
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return
