"""Stories drawn at random: an application, its clients, and what happens to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from caughtup.models.assignment.configs import Configs
from caughtup.models.simulation.streams.topology import (
    CONSUMER_TIMINGS,
    STREAMS_TIMINGS,
    AssignmentProtocol,
    Changelog,
    SimulatedApplication,
    uniform,
)

MINUTE = 60_000
#: Kafka's sticky assignors may hand tasks to and fro for ever (KAFKA-20198), as seeds 340 and others.
COME_TO_REST = frozenset({"high_availability", "minimal_movement"})
ASSIGNORS = ("high_availability", "sticky", "public_sticky", "minimal_movement")


@dataclass(frozen=True)
class Happening:
    """Something that happens to a client at a moment (ms): start, stop, leave, kill, lose or pause.

    A pause lasts ``for_ms``.
    """

    at_ms: int
    what: str
    client: str
    for_ms: int = 0


@dataclass(frozen=True)
class Story:
    """What is played: an application, its clients' threads, and what happens.

    ``restores``: how fast clients restore, as a share of ``restore_per_second``; 1 unless said.
    """

    seed: int
    application: SimulatedApplication
    threads: dict[str, int]
    happenings: tuple[Happening, ...]
    lasting_ms: int
    restores: dict[str, float] = field(default_factory=dict)

    @property
    def last_ms(self) -> int:
        """When the last of what happens is over."""
        return max(one.at_ms + one.for_ms for one in self.happenings)


def random_story(seed: int, most_clients: int = 10, most_tasks: int = 100) -> Story:
    """Draw a story: some clients start, then come and go; the last of it is calm."""
    rng = random.Random(seed)
    clients = [f"c{number}" for number in range(rng.randint(2, most_clients))]
    stateful = rng.randint(1, most_tasks)
    stateless = rng.choice([0, 0, rng.randint(1, most_tasks)])
    # What is written in a heartbeat is less than any acceptable lag but 0: with lag 0 a warm-up of
    # a task that writes is never caught up, and probing rebalances have no end.
    writes = rng.choice([0.0, 10.0, 100.0])
    changelog = Changelog(rng.choice([0, 10_000, 1_000_000]), writes)
    subtopologies, partitions, changelogs = uniform(stateful, stateless, changelog)
    application = SimulatedApplication(
        subtopologies,
        partitions,
        changelogs,
        restore_per_second=rng.choice([20_000.0, 200_000.0]),
        assignor=rng.choice(ASSIGNORS),
        configs=Configs(
            acceptable_recovery_lag=rng.choice([1_000 if writes else 0, 1_000, 10_000]),
            max_warmup_replicas=rng.choice([1, 2, 8]),
            num_standby_replicas=rng.choice([0, 0, 1, 2]),
            probing_rebalance_interval_ms=MINUTE,
        ),
        waits_for_thread=rng.random() < 0.3,
        eager=rng.random() < 0.2,
    )
    running, happenings = set[str](), list[Happening]()
    at_ms = 0
    for client in clients:
        if rng.random() < 0.8 or client == clients[-1]:
            at_ms += rng.choice([0, 0, 500, 5_000])
            happenings.append(Happening(at_ms, "start", client))
            running.add(client)
    for _ in range(rng.randint(1, 6)):
        at_ms += rng.choice([10, 3_000, 20_000, 2 * MINUTE])
        client = rng.choice(clients)
        if client in running and len(running) > 1:
            happenings.append(
                Happening(at_ms, rng.choice(["stop", "leave", "kill", "lose"]), client)
            )
            running.discard(client)
        elif client not in running:
            happenings.append(Happening(at_ms, "start", client))
            running.add(client)
    # Room for every warm-up that a balance may need, one probing rebalance after the other.
    needed = (stateful * (1 + application.configs.num_standby_replicas) + 10) * 2 * MINUTE
    threads = {client: rng.choice([1, 1, 2, 4]) for client in clients}
    # One that restores less than is written to all of its copies never catches up.
    copies = stateful * (1 + application.configs.num_standby_replicas)
    slow = 0.1 if application.restore_per_second > 20 * writes * copies else 1.0
    restores = {client: rng.choice([1.0, 1.0, slow]) for client in clients}
    needed = round(needed / min(restores.values()))
    paused = with_pauses(happenings, rng)
    last_ms = max(one.at_ms + one.for_ms for one in paused)
    return Story(seed, application, threads, paused, last_ms + needed, restores)


def with_pauses(happenings: Sequence[Happening], rng: random.Random) -> tuple[Happening, ...]:
    """Let clients that run stand still between happenings: shorter than a session, or longer."""
    running, woven = set[str](), list[Happening]()
    for one in happenings:
        woven.append(one)
        (running.add if one.what == "start" else running.discard)(one.client)
        if running and rng.random() < 0.2:
            client, for_ms = rng.choice(sorted(running)), rng.choice([500, 20_000, 2 * MINUTE])
            woven.append(
                Happening(one.at_ms + rng.choice([0, 700, 5_000]), "pause", client, for_ms)
            )
    return tuple(sorted(woven, key=lambda one: one.at_ms))


def coordinated_story(seed: int, most_clients: int = 10, most_tasks: int = 100) -> Story:
    """Draw a story of a streams group, or of a consumer group, whose partitions have no state."""
    story = random_story(seed, most_clients, most_tasks)
    application = story.application
    if seed % 2:
        coordinated = replace(
            application, protocol=AssignmentProtocol.STREAMS, timings=STREAMS_TIMINGS
        )
    else:
        width = max(application.partitions.values())
        subtopologies, partitions, changelogs = uniform(0, width, Changelog(0))
        coordinated = replace(
            application,
            subtopologies=subtopologies,
            partitions=partitions,
            changelogs=changelogs,
            protocol=AssignmentProtocol.CONSUMER,
            timings=CONSUMER_TIMINGS,
            assignor="uniform" if seed % 4 else "range",
        )
    return replace(story, application=replace(coordinated, eager=False))


def comes_to_rest(story: Story) -> bool:
    """Return whether the group has to come to rest, by whoever assigns in it."""
    application = story.application
    return (
        application.protocol is not AssignmentProtocol.CLASSIC
        or application.assignor in COME_TO_REST
    )
