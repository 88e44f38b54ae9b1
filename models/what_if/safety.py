"""Whether an instance can stop now without a long standstill of any task, and when it can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from caughtup.models.durations import duration
from caughtup.models.ids import TaskId
from caughtup.models.records.fields import ABSENT, Absent, Part
from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.what_if.question import ask
from caughtup.models.what_if.setting import Playable, WhatIfSetting

#: The default of the longest acceptable standstill of a task (ms), if no service has a record of the
#: application's standstills: a session timeout and a rebalance.
WITHIN_MS = 60_000
_AS_IT_IS = WhatIfSetting()
_NO_ETAS: Mapping[tuple[str, TaskId], int | None] = MappingProxyType({})


class Safety(Part):
    """Whether stopping an instance is safe: the answer of ``caughtup safe`` and of the service.

    ``still_ms`` is the longest standstill of a task, at the slowest observed restore rate, and
    ``task`` is that task, None if none would stand still. ``known`` is False if a state has to be
    restored and no restore rate is known: then stopping isn't safe. ``safe_in_ms``: the time until
    the missing copies are caught up, by their ETAs; None if unknown, or never. ``within_ms`` is the
    longest acceptable standstill. ``open_configs``: the configs of which other values are possible.
    ``within_from``: the source of ``within_ms`` in a service; ``record`` is the longest standstill
    of the last hours.
    """

    safe: bool
    known: bool
    reason: str
    still_ms: int
    task: str | None
    safe_in_ms: int | None
    within_ms: int
    open_configs: Mapping[str, str]
    within_from: Literal["asked", "default", "record"] | Absent = ABSENT


def safe_to_stop(
    group: Playable,
    client: str,
    *,
    within_ms: int,
    leave_group: bool,
    setting: WhatIfSetting = _AS_IT_IS,
    etas_ms: Mapping[tuple[str, TaskId], int | None] = _NO_ETAS,
    between_steps: Callable[[], None] = lambda: None,
) -> Safety:
    """Return whether an instance can be stopped without a standstill longer than ``within_ms``.

    ``etas_ms``: by process and task, the ms until copies that are behind are caught up; None if
    unknown. ``leave_group``: the instance leaves the group. ``between_steps`` is called from time
    to time, and may raise to end it. Raises UnknownClientError.
    """
    answer = ask(
        group, PlannedActions(stop=(client,), leave_group=leave_group), setting, between_steps
    )
    still = answer.slow.figures.still_ms
    worst = max(still, key=still.__getitem__, default=None)
    still_ms = 0 if worst is None else still[worst]
    restored = answer.slow.offsets_restored > 0
    known = answer.restoring_known or not restored
    if answer.slow.endless is not None:
        reason = f"the group never reaches a stable assignment: {answer.slow.endless}"
        return Safety(False, known, reason, still_ms, worst, None, within_ms, group.open_configs)
    if known and still_ms <= within_ms:
        longer = f" for longer than {_in_words(still_ms)}" if still_ms else ""
        reason = f"no task stands still{longer}"
        return Safety(True, True, reason, still_ms, worst, 0, within_ms, group.open_configs)
    lacking, waits_ms = _missing_copy(group, client, setting, etas_ms)
    if lacking:
        reason = lacking
    elif not known:
        reason = "a task's state would have to be restored, and the restore rate is not known, since caughtup has seen no copy restore"
    else:
        reason = f"{worst} would stand still for {_in_words(still_ms)}"
    return Safety(False, known, reason, still_ms, worst, waits_ms, within_ms, group.open_configs)


def _missing_copy(
    group: Playable,
    client: str,
    setting: WhatIfSetting,
    etas_ms: Mapping[tuple[str, TaskId], int | None],
) -> tuple[str | None, int | None]:
    """Return why a task would lack a caught-up copy, and in how many ms one is caught up."""
    slowest = group.speeds.restore[0] if group.speeds.restore else 0.0
    application = group.application(setting, slowest)
    instances = group.running(application)
    acceptable = application.configs.acceptable_recovery_lag
    others = [one for one in instances if one.name != client]
    worst: tuple[int, TaskId] | None = None
    for task in sorted(task for one in instances if one.name == client for task in _active(one)):
        if task not in application.changelogs:
            continue  # stateless
        end = application.changelogs[task].end
        reached = [at for one in others if (at := one.offset_sums.get(task)) is not None]
        if reached and end - max(reached) <= acceptable:
            continue
        built = [one for one in others if any(task in thread.standby for thread in one.threads)]
        if not built:
            return f"{task}'s only caught-up copy is here, and no other one is being built", None
        etas = (etas_ms.get((str(one.process), task)) for one in built)
        behind = [eta for eta in etas if eta is not None]
        if not behind:
            lacking = f"{task}'s only caught-up copy is here; its standby is behind"
            return f"{lacking}, and it is not known for how long", None
        if worst is None or min(behind) > worst[0]:
            worst = min(behind), task
    if worst is None:
        return None, None
    eta_ms, task = worst
    return (
        f"{task}'s only caught-up copy is here; its standby is caught up in {_in_words(eta_ms)}",
        eta_ms,
    )


def _active(instance: RunningInstance) -> list[TaskId]:
    return [task for thread in instance.threads for task in thread.active]


def _in_words(ms: int) -> str:
    return duration(ms / 1_000)
