"""Encoders of what Connect's workers and their leader send each other, versions 0 to 2."""

from __future__ import annotations

from caughtup.models.wire.connect_protocol import ConnectorsAndTasks, WorkerAssignment, WorkerState
from tests.support.wire import array, byte_string, number, string


def worker_state(value: WorkerState) -> bytes:
    owned = None if value.assignment is None else worker_assignment(value.assignment)
    return b"".join(
        (
            number("h", value.version),
            string(value.url),
            number("q", value.config_offset),
            byte_string(owned) if value.version else b"",
        )
    )


def worker_assignment(value: WorkerAssignment) -> bytes:
    return b"".join(
        (
            number("h", value.version),
            number("h", value.error),
            string(value.leader),
            string(value.leader_url),
            number("q", value.config_offset),
            connectors_and_tasks(value.assigned),
            connectors_and_tasks(value.revoked) if value.version else b"",
            number("i", value.delay_ms) if value.version else b"",
        )
    )


def connectors_and_tasks(value: ConnectorsAndTasks) -> bytes:
    """Write each on its own, so that they are read in this order."""
    connectors = (string(name) + array([number("i", -1)]) for name in value.connectors)
    tasks = (string(name) + array([number("i", task)]) for name, task in value.tasks)
    return array([*connectors, *tasks])
