"""The main act: start a fourth instance of both applications, and wait until they are balanced."""

from __future__ import annotations

import time
from collections.abc import Callable

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.story.growing import FIRST, LAST, now_ms
from caughtup.demo.story.shares import actives, is_balanced
from caughtup.demo.story.truth import recommendations_in_log
from caughtup.demo.story.twins.cost import Cost, cost, foretold, generations_of
from caughtup.demo.story.twins.stage import FOLLOWS, TASKS, TwinStage

_LOOK_SECONDS = 0.5
_SHARE = TASKS // (len(FIRST) + 1)


def grow(stage: TwinStage, say: Callable[[str], None], seconds: float) -> list[Cost]:
    """Start a fourth instance of each application; return the costs, in the stage's order.

    Waits at most ``seconds`` for both to be balanced. Raises CaughtupError.
    """
    started: dict[str, int] = {}

    def start(application: StreamsApplication) -> None:
        application.start_instance(LAST, wait=False)
        started[application.application_id] = now_ms()

    stage.on_both(start)
    ended = _watch(stage, say, started, seconds)
    stopped_ms = now_ms()
    return [
        _cost(stage, one, started[one.application_id], ended.get(one.application_id), stopped_ms)
        for one in stage.applications
    ]


def _watch(
    stage: TwinStage, say: Callable[[str], None], started: dict[str, int], seconds: float
) -> dict[str, int]:
    """Print every task that the fourth instances get; return when each was balanced (ms)."""
    deadline = time.monotonic() + seconds
    ended: dict[str, int] = {}
    runs = dict.fromkeys(started, 0)
    while len(ended) < len(started) and time.monotonic() < deadline:
        stage.check_alive()
        for application in stage.applications:
            name = application.application_id
            if name in ended:
                continue
            got = actives(application)[LAST]
            if got != runs[name]:
                say(f"{name}: {LAST} runs {got} of its {_SHARE} tasks")
                runs[name] = got
            if is_balanced(application, TASKS):
                ended[name] = now_ms()
                after = (ended[name] - started[name]) / 1000
                say(f"{name} is balanced, {after:.0f} s after {LAST} joined")
        time.sleep(_LOOK_SECONDS)
    return ended


def _cost(
    stage: TwinStage,
    application: StreamsApplication,
    started_ms: int,
    balanced_ms: int | None,
    stopped_ms: int,
) -> Cost:
    name = application.application_id
    records = recommendations_in_log(stage.cluster, name)
    grown = (record for record in records if len(record["process_ids"]) > len(FIRST))
    return cost(
        name,
        [copy for one in application.instances for copy in application.restored(one)],
        generations_of(stage.cluster, name),
        started_ms,
        stopped_ms if balanced_ms is None else balanced_ms,
        balanced_ms is not None,
        foretold(next(grown, {}), name == FOLLOWS),
    )
