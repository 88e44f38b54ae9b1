"""The composition root: settings in, a Faust app with everything wired to it out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import faust

from caughtup.agents.application_states import application_states
from caughtup.agents.assessor import Assessor
from caughtup.agents.catch_up_rates import catch_up_rates
from caughtup.agents.end_offsets import EndOffsetsProbe, end_offsets
from caughtup.agents.forgetting import Forgetter
from caughtup.agents.health import Health
from caughtup.agents.kafka_config import faust_credentials
from caughtup.agents.kept_channel import kept_channel
from caughtup.agents.lag_topic import LagTopic
from caughtup.agents.offsets import OffsetsReader, offsets
from caughtup.agents.outbox import OutboxTopic
from caughtup.agents.pipeline_progress import pipeline_progress
from caughtup.agents.reassignments import ReassignmentsProbe, reassignments
from caughtup.agents.recommend import recommend
from caughtup.agents.settings import Settings
from caughtup.agents.signing import Signer
from caughtup.agents.supervisor import AgentSupervisor
from caughtup.agents.task_positions import task_positions
from caughtup.agents.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    MAX_RECORD_BYTES,
    MOVEMENTS,
    PIPELINE_PROGRESS,
    REASSIGNMENTS,
    RECOMMENDATIONS,
    TASK_POSITIONS,
    topic_name,
)
from caughtup.agents.web import WebServer
from caughtup.models.state import ClusterState

_METADATA_MS = 10_000
_BATCHES_WAITING = 4


@dataclass(frozen=True, slots=True)
class Wired:
    """The service, put together: the Faust app, and what else a caller may want to look at."""

    app: faust.App
    state: ClusterState
    health: Health
    web: WebServer


def create_app(settings: Settings, state: ClusterState, scratch: Path) -> Wired:
    """Wire agents, probes and the web server to one Faust app. Nothing is started yet.

    Call it with the event loop running that the app is to live on. Faust wants a directory even
    where it keeps nothing: ``scratch``.
    """
    app = faust.App(
        settings.application_id,
        broker=[f"kafka://{server}" for server in settings.bootstrap_servers.split(",")],
        broker_credentials=faust_credentials(settings),
        store="memory://",
        datadir=scratch,
        web_enabled=False,
        # Topics are created by agents/topics.py; Faust would make them its own way.
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=5.0,
        agent_supervisor=AgentSupervisor,
        # After a crash the group lets the new process in this much later, at most.
        broker_session_timeout=15.0,
        broker_heartbeat_interval=3.0,
        # A topic of ours that was deleted and made again is found this much later.
        consumer_metadata_max_age_ms=_METADATA_MS,
        producer_metadata_max_age_ms=_METADATA_MS,
        producer_max_request_size=MAX_RECORD_BYTES,
        producer_compression_type="gzip",
        key_serializer="raw",
        value_serializer="raw",
    )
    health = Health()
    hurry = asyncio.Event()
    # Few: the reader waits for the agent, so that a long log isn't held in memory.
    changes = kept_channel(app, _BATCHES_WAITING)
    wakeups = kept_channel(app)
    ends = _topic(app, settings, END_OFFSETS)
    moving = _topic(app, settings, REASSIGNMENTS)
    movements = _topic(app, settings, MOVEMENTS, OutboxTopic)
    recommended = _topic(app, settings, RECOMMENDATIONS, OutboxTopic)

    offsets(app, changes, state, health, wakeups)
    end_offsets(app, ends, state, wakeups)
    reassignments(app, moving, movements, state)
    application_states(app, _topic(app, settings, APPLICATION_STATES), state, wakeups)
    task_positions(app, _topic(app, settings, TASK_POSITIONS), state, wakeups)
    catch_up_rates(app, _topic(app, settings, CATCH_UP_RATES), state)
    pipeline_progress(app, _topic(app, settings, PIPELINE_PROGRESS), state)
    signer = Signer(settings.signing_key_file, state.cluster)
    recommend(app, wakeups, state, health, recommended, movements, hurry, signer)
    web = WebServer(settings, state, health)
    # They stop in the opposite order: until the end it is told that the service isn't ready.
    app.service(web)
    app.service(OffsetsReader(settings, health, changes))
    app.service(EndOffsetsProbe(settings, health, state, ends, hurry))
    app.service(ReassignmentsProbe(settings, health, state, moving))
    app.service(Assessor(state, health, settings.reassignment_budget))
    app.service(Forgetter(state, health, recommended))
    if settings.lag_interval:
        app.service(LagTopic(settings, state, health))
    return Wired(app, state, health, web)


def _topic(
    app: faust.App, settings: Settings, name: str, kind: type[faust.Topic] = faust.Topic
) -> faust.TopicT:
    return kind(
        app,
        topics=[topic_name(settings, name)],
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
    )
