"""What was configured, read from a config topic as far as somebody has read it."""

from __future__ import annotations

import json

from caughtup.demo.cluster.topics import LoggedRecord
from caughtup.demo.connect.group_log import ConfigLog


def _log(*records: tuple[str, object]) -> ConfigLog:
    return ConfigLog(
        [
            LoggedRecord(
                offset, 0, key.encode(), None if value is None else json.dumps(value).encode()
            )
            for offset, (key, value) in enumerate(records)
        ]
    )


def test_connectors_have_the_tasks_that_they_have_committed() -> None:
    log = _log(
        ("session-key", {}),
        ("connector-A", {"properties": {}}),
        ("task-A-0", {"properties": {}}),
        ("task-A-1", {"properties": {}}),
        ("commit-A", {"tasks": 2}),
        ("target-state-A", {"state": "STARTED"}),
    )

    assert [dict(log.before(offset)) for offset in range(7)] == [
        *({}, {}),
        *({"A": 0}, {"A": 0}, {"A": 0}),
        *({"A": 2}, {"A": 2}),
    ]


def test_a_connector_made_anew_has_no_tasks_of_the_deleted_one() -> None:
    log = _log(
        ("connector-A", {}),
        ("commit-A", {"tasks": 2}),
        ("connector-A", None),
        ("connector-A", {}),
    )

    assert [dict(log.before(offset)) for offset in (2, 3, 4)] == [{"A": 2}, {}, {"A": 0}]
