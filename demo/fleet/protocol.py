"""Play a generated fleet on a real broker: members join, commit and leave; groups are deleted.

Members are our own connections with the real group protocol, so that the broker's group coordinator
itself writes ``__consumer_offsets``. Events follow each other without waiting for their times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.fleet.connection import Error, GroupConnection, JoinResponse
from caughtup.demo.fleet.offset_commits import make_offsets_topic
from caughtup.demo.fleet.records import PROTOCOLS, TIMEOUT_MS, assignment_of, subscription_of
from caughtup.demo.fleet.timeline import Committed, Event, FleetGroup, Generation
from caughtup.models.errors import CaughtupError

_SECONDS = 60.0
_POLL_SECONDS = 0.02
_NOT_YET = {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
}


def play_fleet(
    cluster: EmbeddedCluster,
    events: Iterable[Event],
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Play a fleet on a cluster of one node that has its topics. ``advance`` counts commits.

    Raises CaughtupError ``group_failed`` if the coordinator refuses a request.
    """
    if len(cluster.node_ids) != 1:
        raise CaughtupError("bad_cluster", "a fleet is played on one node")
    make_offsets_topic(cluster)
    host, _, port = cluster.bootstrap_servers.partition(":")
    live: dict[str, _LiveGroup] = {}
    with ExitStack() as open_groups:
        for event in events:
            name = event.group.name
            if name not in live:
                live[name] = _LiveGroup((host, int(port)), event.group)
                open_groups.callback(live[name].close)
            if isinstance(event, Generation):
                live[name].rebalance(event)
            elif isinstance(event, Committed):
                live[name].commit(event.offsets)
                advance(len(event.offsets))
            else:
                live.pop(name).delete()


class _LiveGroup:
    """A group's members on the broker: connections and member ids by number."""

    def __init__(self, address: tuple[str, int], group: FleetGroup) -> None:
        self._address = address
        self._group = group
        self._protocol = PROTOCOLS[group.streams]
        self._lines: dict[int, GroupConnection] = {}
        self._ids: dict[int, str] = {}
        self._reads: dict[int, tuple[int, ...]] = {}
        self._generation = -1

    def close(self) -> None:
        """Close every connection."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def rebalance(self, event: Generation) -> None:
        """Have members leave and join until they are this generation's; send the assignment."""
        members = {member.number: member for member in event.members}
        said = {number: subscription_of(event, member) for number, member in members.items()}
        fresh = sorted(members.keys() - self._ids.keys())
        changed = self._leave(sorted(self._ids.keys() - members.keys())) or bool(fresh)
        stayed = sorted(self._ids)
        for number in fresh:  # a coordinator waits for members that have an id
            self._introduce(number, said[number])
        self._send_joins(fresh, said)
        if stayed and changed:
            # A member that joins unchanged and too early only gets the last generation again.
            self._wait_rebalancing(stayed[0])
        self._send_joins(stayed, said)
        if members:
            self._deal(event, {number: self._lines[number].joined() for number in sorted(members)})

    def _leave(self, numbers: list[int]) -> bool:
        if not numbers:
            return False
        line = self._lines[numbers[0]]
        line.leave(self._group.name, *(self._ids[number] for number in numbers))
        for number in numbers:
            self._lines.pop(number).close()
            del self._ids[number]
            self._reads.pop(number, None)
        return True

    def _introduce(self, number: int, said: bytes) -> None:
        """Connect a new member, and get its member id."""
        client_id = self._group.client_id(number)
        line = self._lines[number] = GroupConnection(self._address, client_id, _SECONDS)
        deadline = time.monotonic() + _SECONDS
        while True:
            line.send_join(self._group.name, "", self._protocol, said, TIMEOUT_MS)
            answer = line.joined()
            if answer.error not in _NOT_YET or time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        if answer.error != Error.MEMBER_ID_REQUIRED:
            line.require(answer.error)
        self._ids[number] = answer.member_id

    def _send_joins(self, numbers: Iterable[int], said: Mapping[int, bytes]) -> None:
        for number in numbers:
            self._lines[number].send_join(
                self._group.name, self._ids[number], self._protocol, said[number], TIMEOUT_MS
            )

    def _wait_rebalancing(self, number: int) -> None:
        line, deadline = self._lines[number], time.monotonic() + _SECONDS
        while True:
            error = line.heartbeat(self._group.name, self._generation, self._ids[number])
            if error == Error.REBALANCE_IN_PROGRESS:
                return
            line.require(error)
            if time.monotonic() > deadline:
                raise CaughtupError("group_failed", f"{self._group.name} never rebalanced")
            time.sleep(_POLL_SECONDS)

    def _deal(self, event: Generation, answers: Mapping[int, JoinResponse]) -> None:
        for number, answer in answers.items():
            self._lines[number].require(answer.error)
        if (found := {answer.generation for answer in answers.values()}) != {event.number}:
            raise CaughtupError(
                "group_failed", f"{self._group.name}: {found} are no generation {event.number}"
            )
        self._generation = event.number
        given = {self._ids[member.number]: assignment_of(event, member) for member in event.members}
        for number, answer in answers.items():
            own = self._ids[number]
            sent = given if answer.leader == own else {}
            self._lines[number].send_sync(self._group.name, event.number, own, sent)
        for member in event.members:
            received = self._lines[member.number].synced()
            if received != given[self._ids[member.number]]:
                raise CaughtupError(
                    "group_failed", f"{self._group.name}: other tasks than the leader assigned"
                )
            self._reads[member.number] = member.active

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit each member's offsets."""
        for number, partitions in sorted(self._reads.items()):
            if partitions:
                self._lines[number].commit(
                    self._group.name,
                    self._generation,
                    self._ids[number],
                    self._group.topic,
                    {partition: offsets[partition] for partition in partitions},
                )

    def delete(self) -> None:
        """Delete the group, which has to be empty."""
        with GroupConnection(self._address, self._group.name, _SECONDS) as line:
            line.delete(self._group.name)
        self.close()
