"""A small Faust application that follows: a table with the count of each key.

Run as a program it is one worker, which writes its events to a file, a JSON object a line.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import faust
from faust.types import TP, EventT

from caughtup.followers.faust import following
from caughtup.followers.python.settings import FollowerSettings

TABLE = "counts"
HEARTBEAT_SECONDS = 0.5
COMMIT_SECONDS = 0.2


def make_app(options: dict[str, Any]) -> faust.App:
    """Make the application of one worker, which reports its events."""
    app = faust.App(
        options["group"],
        broker=f"kafka://{options['bootstrap_servers']}",
        broker_client_id=options["name"],
        broker_heartbeat_interval=HEARTBEAT_SECONDS,
        # Faust commits nothing during a rebalance, and reprocesses uncommitted records.
        broker_commit_interval=COMMIT_SECONDS,
        datadir=options["directory"],
        store=options["store"],
        topic_partitions=options["partitions"],
        table_standby_replicas=options["standbys"],
        web_enabled=False,
        web_port=options["port"],
        PartitionAssignor=following(options["config"], FollowerSettings(**options["settings"])),
    )
    events = Path(options["events"])

    def tell(kind: str, **event: Any) -> None:
        with events.open("a") as lines:
            lines.write(json.dumps({"kind": kind, "at": time.monotonic(), **event}) + "\n")

    async def restored(event: EventT[Any, Any, Any]) -> None:
        recovery = app.tables.recovery
        message = event.message
        tell(
            "restored",
            partition=message.partition,
            offset=message.offset,
            active=message.tp in recovery.active_tps,
        )

    source = app.topic(options["source"], key_type=str, value_type=int)
    counts = app.Table(
        TABLE, default=int, key_type=str, value_type=int, on_changelog_event=restored
    )

    @app.agent(source, name="count")
    async def count(records: Any) -> None:
        async for event in records.events():
            counts[event.key] += 1
            message = event.message
            tell(
                "counted",
                partition=message.partition,
                offset=message.offset,
                key=event.key,
                count=counts[event.key],
            )

    @app.on_partitions_assigned.connect
    async def assigned(app: faust.App, assigned: set[TP], **more: object) -> None:
        changelog = counts.changelog_topic_name
        tell(
            "assigned",
            process=str(app.assignor.process),
            sources=sorted(one.partition for one in assigned if one.topic == options["source"]),
            active=sorted(p for topic, p in app.assignor.assigned_actives() if topic == changelog),
            standby=sorted(
                p for topic, p in app.assignor.assigned_standbys() if topic == changelog
            ),
            leader=app.is_leader(),
            urls=sorted(map(str, app.assignor.tables_metadata())),
        )

    return app


def main() -> None:
    """Run a worker until it is stopped."""
    loop = asyncio.new_event_loop()
    app = make_app(json.loads(sys.argv[1]))
    worker = faust.Worker(app, loglevel="INFO", redirect_stdouts=False, loop=loop)
    worker.execute_from_commandline()


if __name__ == "__main__":
    main()
