"""``caughtup run`` with a part that fails once a file exists: ``python -m … PART FILE run …``.

The parts are patched in the modules that wire them; the rest of the service is unchanged.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

import faust
from mode import Service

from caughtup.agents.assessor import Assessor
from caughtup.agents.cli import run
from caughtup.agents.election.agent import Election
from caughtup.agents.end_offsets import EndOffsetsProbe
from caughtup.agents.kafka import offset_log
from caughtup.agents.lag_topic import LagTopic
from caughtup.agents.main import main
from caughtup.agents.offsets.reader import OffsetsReader
from caughtup.agents.process import health, supervisor
from caughtup.agents.process.health import PUBLISHER
from caughtup.agents.reassignments.probe import ReassignmentsProbe
from caughtup.agents.topics import consumer as topics_consumer
from caughtup.agents.topics.keeper import Forgetter, TopicKeeper
from caughtup.agents.topics.publisher import Publisher
from caughtup.agents.topics.reader import TopicsReader
from caughtup.models.polls.record_batches import FetchedRecords

TASKS: dict[str, tuple[type[Service], str]] = {
    "the reader of offsets": (OffsetsReader, "_run"),
    "the probe of end offsets": (EndOffsetsProbe, "_run"),
    "the probe of reassignments": (ReassignmentsProbe, "_run"),
    "the assessor of groups": (Assessor, "_run"),
    "the assessor of movements": (Assessor, "_run_movements"),
    "the lag topic": (LagTopic, "_run"),
    "the reader of own topics": (TopicsReader, "_run"),
    "the election": (Election, "_run"),
    "the keeper of topics": (TopicKeeper, "_run"),
    "the forgetter": (Forgetter, "_run"),
}
AGENTS = (
    "offsets",
    "end_offsets",
    "reassignments",
    "application_states",
    "task_positions",
    "catch_up_rates",
    "pipeline_progress",
    "recommend",
)
LOOP = "the event loop hangs"
READING = "reading offsets raises"
HANGING = "reading offsets hangs"
STANDING = "reading offsets stands still"
OWN_HANGING = "reading own topics hangs"
ANSWERING = "the publisher's thread ends"
STOPPING = "stopping hangs"
STOPPING_HARD = "stopping blocks the event loop"
LEAVING = "a thread never returns"
PREPARING = "preparing raises"
PREPARING_LONG = "preparing hangs"
#: The time after which a blocked part counts as standing still, in seconds.
PATIENCE_SECONDS = 2.0
#: The time after which the service is no longer healthy, in seconds.
HEALTHY_SECONDS = 0.5
_FOR_EVER = 1_000_000.0


class BrokenOnPurposeError(Exception):
    """The error that a broken part raises."""


def main_with(part: str, trigger: Path, arguments: list[str]) -> None:
    if part in TASKS:
        owner, name = TASKS[part]
        setattr(
            owner, name, Service.task(_until_triggered(getattr(owner, name).fun, part, trigger))
        )
    elif part in AGENTS:
        _replace_agent(part, trigger)
    elif part == LOOP:
        _beside_the_service(trigger, lambda: time.sleep(_FOR_EVER))
    elif part in (READING, HANGING, STANDING):
        _break_polls(part, trigger)
    elif part == OWN_HANGING:
        poll = topics_consumer.StandaloneConsumer.poll
        topics_consumer.StandaloneConsumer.poll = lambda *args: (
            time.sleep(_FOR_EVER) if trigger.exists() else poll(*args)
        )
    elif part == ANSWERING:
        _end_thread(trigger)
    elif part == STOPPING:
        OffsetsReader.on_stop = lambda _: asyncio.sleep(_FOR_EVER)  # type: ignore[assignment]
        _beside_the_service(trigger, lambda: _break(part))
    elif part == STOPPING_HARD:
        OffsetsReader.on_stop = lambda _: time.sleep(_FOR_EVER)  # type: ignore[assignment]
    elif part == LEAVING:
        thread = threading.Thread(target=time.sleep, args=(_FOR_EVER,))
        _beside_the_service(trigger, thread.start)
    elif part == PREPARING:
        run.prepare = lambda _: _break(part)
    elif part == PREPARING_LONG:
        run.prepare = lambda _: print(part, flush=True) or time.sleep(_FOR_EVER)
    else:
        raise SystemExit(f"no such part: {part}")
    if part in (LOOP, HANGING, STANDING, OWN_HANGING, ANSWERING):
        patience = dict.fromkeys(supervisor.PATIENCE_SECONDS, PATIENCE_SECONDS)
        supervisor.Supervisor.__init__.__defaults__ = (patience,)
        healthy = dict.fromkeys(health.HEALTHY_SECONDS, HEALTHY_SECONDS)
        health.HEALTHY_SECONDS.update(healthy)  # type: ignore[attr-defined]
    main(arguments)


def _break(part: str) -> NoReturn:
    raise BrokenOnPurposeError(f"{part} broke\nfor a test")


async def _triggered(trigger: Path) -> None:
    while not trigger.exists():  # noqa: ASYNC110, ASYNC240 - another process makes the file
        await asyncio.sleep(0.05)


def _until_triggered(
    works: Callable[[Any], Coroutine[Any, Any, None]], part: str, trigger: Path
) -> Callable[[Any], Coroutine[Any, Any, None]]:
    """Wrap a coroutine function so that it fails once the file exists."""

    async def breaks(argument: Any) -> None:
        working = asyncio.ensure_future(works(argument))
        await _triggered(trigger)
        working.cancel()
        _break(part)

    return breaks


def _replace_agent(part: str, trigger: Path) -> None:
    register = faust.App.agent

    def agent(app: faust.App, channel: Any, *, name: str, **options: Any) -> Any:
        decorate = register(app, channel, name=name, **options)
        if name != part:
            return decorate
        return lambda works: decorate(_until_triggered(works, part, trigger))

    faust.App.agent = agent


def _beside_the_service(trigger: Path, act: Callable[[], object]) -> None:
    works = run.create_app

    async def beside() -> None:
        await _triggered(trigger)
        act()

    def wired(*arguments: Any) -> Any:
        made = works(*arguments)
        made.app.add_future(beside())
        return made

    run.create_app = wired


def _end_thread(trigger: Path) -> None:
    poll = Publisher._poll

    def ends(self: Publisher) -> None:
        thread = threading.Thread(target=poll, args=(self,), daemon=True)
        thread.start()
        while not trigger.exists():
            time.sleep(0.05)
        self._stopped_polling.set()
        thread.join()
        self._health.pulses.beat(PUBLISHER)  # as one that was at work when it ended

    Publisher._poll = ends


def _break_polls(part: str, trigger: Path) -> None:
    find, behind = offset_log.decode_record_batches, offset_log.OffsetLog.behind

    def broken(*arguments: Any, **named: Any) -> FetchedRecords:
        found = find(*arguments, **named)
        if not trigger.exists():
            return found
        if part == READING:
            _break(part)
        if part == HANGING:
            time.sleep(_FOR_EVER)
        nothing = found.records.select(slice(0, 0))
        return found._replace(records=nothing)

    offset_log.decode_record_batches = broken
    if part == STANDING:
        offset_log.OffsetLog.behind = lambda self: behind(self) + trigger.exists()  # type: ignore


if __name__ == "__main__":
    main_with(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
