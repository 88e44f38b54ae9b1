"""The composition root: make a Faust app with all agents and services from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faust
from faust.app.base import BootStrategy
from mode import Service

from caughtup.agents.assessor import Assessor
from caughtup.agents.checkpoints.services import CheckpointCommitter, CheckpointReader
from caughtup.agents.configuration.secret_files import SecretFiles
from caughtup.agents.connect.reader import ConnectReader
from caughtup.agents.connect.watcher import ConnectWatcher
from caughtup.agents.election.agent import Election
from caughtup.agents.election.shared import SharedElection
from caughtup.agents.end_offsets import EndOffsetsProbe
from caughtup.agents.hand_over import HandOver
from caughtup.agents.kafka.asking.asker import ALL_TYPES, NOT_IN_LOG
from caughtup.agents.kafka.partition_leaders import coordinator_moved_ms
from caughtup.agents.kafka.tokens.keeper import TokenKeeper
from caughtup.agents.kept_channel import KeptChannel, Wakeup, kept_channel
from caughtup.agents.lag_topic import LagTopic
from caughtup.agents.memory_watch import MemoryWatch
from caughtup.agents.offsets.agent import CaughtUp, Changes, ChannelMark, offsets
from caughtup.agents.offsets.asking import BY_ASKING, GroupsReader
from caughtup.agents.offsets.reader import OffsetsReader
from caughtup.agents.probes.assignors import AssignorsProbe
from caughtup.agents.process.health import Health
from caughtup.agents.process.supervisor import AgentSupervisor
from caughtup.agents.reassignments.agent import reassignments
from caughtup.agents.reassignments.probe import ReassignmentsProbe
from caughtup.agents.rebalances import RebalancesProbe
from caughtup.agents.recent.sampler import Sampler
from caughtup.agents.recommendations.agent import recommend
from caughtup.agents.recommendations.signing import Signer
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import AppliedTopic, apply_topic
from caughtup.agents.topics.keeper import Forgetter, TopicKeeper
from caughtup.agents.topics.publisher import Publisher
from caughtup.agents.topics.reader import Slice, TopicsReader
from caughtup.agents.topics.reports import (
    application_states,
    catch_up_rates,
    end_offsets,
    pipeline_progress,
    task_positions,
)
from caughtup.agents.topics.restoration import restore_published
from caughtup.agents.transactions import TransactionsProbe
from caughtup.agents.web.server import WebServer
from caughtup.models.records.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    LAG,
    LEARNED_CONFIGS,
    MOVEMENTS,
    PIPELINE_PROGRESS,
    REASSIGNMENTS,
    RECOMMENDATIONS,
    TASK_POSITIONS,
    TRANSACTIONS,
)
from caughtup.models.security.kafka import exposures
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:
    from caughtup.agents.topics.in_memory import InMemoryTopics

_BATCHES_WAITING = 4
#: The own topics that the service reads all the time.
_READ = (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    PIPELINE_PROGRESS,
    REASSIGNMENTS,
    TASK_POSITIONS,
)


@dataclass(frozen=True, slots=True)
class Wired:
    """The wired service: the Faust app, and the parts that callers use."""

    app: faust.App
    state: ClusterState
    health: Health
    web: WebServer


class _Boot(BootStrategy):
    """Starts neither Faust's consumer nor its producer: the service has its own."""

    enable_kafka = False


class _App(faust.App):
    BootStrategy = _Boot

    def runs(self, service: Service) -> None:
        """Start and stop a service with the app."""
        self.service(service)  # type: ignore[arg-type]  # it also takes instances


def create_app(settings: Settings, state: ClusterState, scratch: Path) -> Wired:
    """Wire agents, probes and the web server to one Faust app, without starting anything.

    Call it on the event loop that the app will use. ``scratch``: the data directory that Faust
    requires, although nothing is stored in it.
    """
    app = _App(
        settings.application_id,
        store="memory://",
        datadir=scratch,
        web_enabled=False,
        agent_supervisor=AgentSupervisor,
    )
    health = Health(settings.cluster_name, tuple(exposures(settings.kafka)))
    hurry = asyncio.Event()
    # Bounded: the reader waits for the agent, so that a long log is not held in memory.
    changes: KeptChannel[Changes | CaughtUp | ChannelMark] = kept_channel(app, _BATCHES_WAITING)
    wakeups: KeptChannel[Wakeup] = kept_channel(app)
    read: dict[str, KeptChannel[Slice]] = {name: kept_channel(app) for name in _READ}
    reader = TopicsReader(settings, health, state, read, from_end=frozenset({REASSIGNMENTS}))

    is_shared = settings.workers == "shared"
    turn = asyncio.Lock()
    publisher: Publisher | InMemoryTopics
    election: Election | None = None
    if settings.own_topics:
        election = (
            SharedElection(
                settings,
                health,
                state.held,
                lambda: hand_over,
                lambda: publisher.flush(),
                lambda: web.address,
            )
            if is_shared
            else Election(settings, health, lambda: elected(), lambda: publisher.flush())
        )
        health.cluster_wide = partial(state.held.has_group, settings.application_id)
        may_publish = election.may_publish
        publisher = on_cluster = Publisher(settings, health, may_publish)
    else:
        may_publish = _always
        # Here, since its file is an SQLite database, which nothing else needs.
        from caughtup.agents.topics.in_memory import InMemoryTopics

        publisher = InMemoryTopics(settings, health, state, read)
    movements, recommended = publisher.topic(MOVEMENTS), publisher.topic(RECOMMENDATIONS)
    learned = publisher.topic(LEARNED_CONFIGS)
    signer = Signer(settings.signing_key_file, state.cluster)

    offsets(app, changes, state, health, wakeups)
    moves = ReassignmentsProbe(settings, health, state, publisher.topic(REASSIGNMENTS))
    reassignments(app, read[REASSIGNMENTS], movements, state, health)
    applied_topics: tuple[tuple[AppliedTopic[Any], Wakeup | None], ...] = (
        (application_states, Wakeup.GROUPS),
        (end_offsets, Wakeup.END_OFFSETS),
        (task_positions, Wakeup.POSITIONS),
        (catch_up_rates, None),
        (pipeline_progress, None),
    )
    for topic, wakeup in applied_topics:
        applied = None if wakeup is None else partial(wakeups.put, wakeup)
        apply_topic(app, read[topic.topic], state, topic, applied)
    recommend(app, wakeups, state, health, recommended, learned, movements, hurry, signer, turn)

    ends = EndOffsetsProbe(settings, health, state, publisher.topic(END_OFFSETS), hurry)
    log_reader = OffsetsReader(settings, health, changes, shared=is_shared)
    reads_log = settings.source != "ask"
    health.source = None if reads_log else BY_ASKING.format(settings.ask_interval)
    state.rebalancing.coordinator_moved_ms = partial(coordinator_moved_ms, log_reader.partitions)
    transactions = TransactionsProbe(
        settings, health, state, publisher.topic(TRANSACTIONS), log_reader.held_offsets
    )
    lag = LagTopic(settings, state, health, may_publish)
    connect_watcher = ConnectWatcher(state, health, movements)

    def groups_taken() -> None:
        lag.groups_taken()
        ends.groups_taken()

    async def elected() -> None:
        await reader.caught_up.wait()
        # First of all: nothing that the instance before sent may arrive after it was read back.
        await on_cluster.fence.begin()
        await restore_published(settings, state, signer.forgeries())
        await wakeups.put(Wakeup.GROUPS)

    if is_shared:
        hand_over = HandOver(
            settings,
            state,
            health,
            log_reader,
            reader,
            on_cluster,
            signer,
            wakeups,
            turn,
            groups_taken,
            connect_watcher.is_idle,
        )
    write_again: dict[str, Callable[[], object]] = {
        END_OFFSETS: ends.write_again,
        REASSIGNMENTS: moves.write_again,
        LAG: lag.write_again,
        TRANSACTIONS: transactions.write_again,
        **dict.fromkeys(
            (RECOMMENDATIONS, LEARNED_CONFIGS),
            lambda: wakeups.queue.put_nowait(Wakeup.RECREATED),
        ),
    }

    def recreated(topic: str) -> None:
        name = topic.removeprefix(settings.topic_prefix)
        publisher.replace_client()
        reader.read_again(name)
        write_again.get(name, lambda: None)()

    web = WebServer(settings, state, health)
    # Services stop in the reverse of this order: those that publish stop before the group is left, and
    # the web server stops last, so that /ready answers until the end.
    app.runs(web)
    app.runs(MemoryWatch(health))
    if settings.otlp_endpoint is not None:
        app.runs(_otlp_exporter(settings.otlp_endpoint, settings, web, health, state))
    app.runs(publisher)
    if election is not None:
        app.runs(election)
    if reads_log:
        app.runs(log_reader)
    types = NOT_IN_LOG if reads_log else ALL_TYPES
    app.runs(GroupsReader(settings, health, changes, state, hurry.set, types))
    app.runs(SecretFiles(settings))
    app.runs(TokenKeeper(settings, health))
    if settings.own_topics:
        app.runs(reader)
        app.runs(TopicKeeper(settings, health, recreated))
    app.runs(Assessor(state, health, settings.reassignment_budget))
    app.runs(Sampler(state, health))
    app.runs(Forgetter(state, health, recommended, learned))
    app.runs(ConnectReader(settings, health, state))
    app.runs(connect_watcher)
    if settings.spark_checkpoints:
        app.runs(CheckpointReader(settings, health, state))
        if settings.spark_checkpoints_commit:
            app.runs(CheckpointCommitter(settings, state, health, may_publish))
    app.runs(ends)
    app.runs(moves)
    app.runs(transactions)
    app.runs(AssignorsProbe(settings, health, state))
    if settings.rebalance_interval and reads_log:
        wake = partial(wakeups.put, Wakeup.END_OFFSETS)
        app.runs(RebalancesProbe(settings, health, state, log_reader.partitions, wake))
    if settings.lag_interval and settings.own_topics:
        app.runs(lag)
    return Wired(app, state, health, web)


def _always() -> bool:
    return True


def _otlp_exporter(
    endpoint: str, settings: Settings, web: WebServer, health: Health, state: ClusterState
) -> Service:
    """Make what sends the metrics over OTLP; its packages are in an extra."""
    from caughtup.agents.otlp.exporter import OtlpExporter

    return OtlpExporter(endpoint, settings.otlp_interval, web.metrics, health, state.cluster)
