"""Connect groups as they are now, straight from a cluster: no service needed."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException

from caughtup.agents.cli.snapshot import ClusterLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.connect.reader import ConnectTopics, apply_records
from caughtup.agents.connect.watcher import decide_due
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.models.connect_clusters.table import PATIENCE_MS
from caughtup.models.state.cluster import ClusterState

_POLL_SECONDS = 0.3
#: So long a look waits for the topics of worker clusters to be read.
_PATIENCE_SECONDS = 60.0


class ConnectLooks:
    """Looks at the Connect groups of a cluster again and again. Calls raise UserError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looks = ClusterLooks(settings, every_generation=True)
        self._topics: ConnectTopics | None = None

    def look(self) -> ClusterState:
        """Return the cluster as it is now; it is the same state each time."""
        state = self._looks.look(Progress())
        if state.connect.groups:
            try:
                self._read_topics(state)
            except KafkaException as error:
                raise UserError(f"cannot read the topics of Connect ({error.args[0]})") from None
        # Nobody waits for a configuration that wasn't there to be read.
        decide_due(state, now_ms() + PATIENCE_MS)
        return state

    def _read_topics(self, state: ClusterState) -> None:
        """Read what the topics of worker clusters have by now."""
        if self._topics is None:
            self._topics = ConnectTopics(self._settings)
        state.connect.unreadable = self._topics.look(state)
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            poll = self._topics.poll(_POLL_SECONDS)
            for topic, records in poll.records.items():
                apply_records(state, topic, records)
            self._topics.note_read(state)
            unreadable = {topic: error.str() for topic, error in poll.refused.items()}
            state.connect.unreadable.update(unreadable)
            if not poll.records and (state.connect.looked or unreadable):
                return
