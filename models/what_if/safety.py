"""Whether an instance can go now without a task standing still for long, and when it can."""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.durations import duration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.plan import Plan
from caughtup.models.what_if.question import Answer, Group, ask
from caughtup.models.what_if.setting import Setting


@dataclass(frozen=True, slots=True)
class Safety:
    """Whether stopping an instance is safe.

    ``still_ms`` is for how long the task that stands still longest would (the slowest restoring
    that was seen), ``task`` is that task, None if none would. ``known`` is False where no copy was
    seen to restore and something would have to: then it isn't safe. ``safe_in_ms``: when the
    copies that it lacks are caught up, by their ETAs; None if that isn't known, or never.
    ``within_ms`` is for how long a task may stand still: what was asked, or taken where nobody did.
    """

    safe: bool
    known: bool
    still_ms: int
    task: str | None
    reason: str
    safe_in_ms: int | None
    within_ms: int
    answer: Answer


def safe_to_stop(
    group: Group,
    client: str,
    *,
    within_ms: int,
    setting: Setting,
    etas_ms: dict[tuple[str, TaskId], int | None],
    leave_group: bool,
) -> Safety:
    """Say whether an instance can be stopped without a task standing still longer than that.

    ``etas_ms``: by process and task, in how many ms copies that are behind are caught up; None
    where unknown. ``leave_group``: it tells the group that it goes. Raises UnknownClientError.
    """
    answer = ask(group, Plan(stop=(client,), leave_group=leave_group), setting)
    still = answer.slow.figures.still_ms
    worst = max(still, key=lambda task: (still[task], task), default=None)
    still_ms = 0 if worst is None else still[worst]
    restored = answer.slow.offsets_restored > 0
    known = answer.restoring_known or not restored
    if answer.slow.endless is not None:
        return Safety(
            False,
            known,
            still_ms,
            worst,
            f"it never comes to rest: {answer.slow.endless}",
            None,
            within_ms,
            answer,
        )
    if known and still_ms <= within_ms:
        reason = f"no task stands still for longer than {_said(still_ms)}"
        return Safety(True, True, still_ms, worst, reason, 0, within_ms, answer)
    lacking, waits_ms = _lacking(group, client, etas_ms)
    if lacking:
        reason = lacking
    elif not known:
        reason = (
            "a state would be restored, and no copy was ever seen to restore: nobody knows how long"
        )
    else:
        reason = f"{worst} would stand still for {_said(still_ms)}"
    return Safety(False, known, still_ms, worst, reason, waits_ms, within_ms, answer)


def _lacking(
    group: Group, client: str, etas_ms: dict[tuple[str, TaskId], int | None]
) -> tuple[str | None, int | None]:
    """Name the first task whose only caught-up copy is here, and when another one is there."""
    process = next(
        (str(one.process) for one in group.running() if one.name == client), str(ProcessId(0, 0))
    )
    acceptable = group.decided.inputs.scenario.acceptable_recovery_lag
    worst: tuple[int, TaskId] | None = None
    for row in group.rows:
        if row.process != process or row.role not in {"active", "restoring"}:
            continue
        if row.end_offset_sum is None and row.task not in group.decided.inputs.ends:
            continue  # without state
        others = [one for one in group.rows if one.task == row.task and one.process != process]
        if any(one.lag is not None and one.lag <= acceptable for one in others):
            continue
        behind = [
            eta
            for one in others
            if one.role in {"standby", "warmup"}
            and (eta := etas_ms.get((one.process, row.task))) is not None
        ]
        if not behind:
            return f"{row.task}'s only caught-up copy is here, and no other is on its way", None
        if worst is None or min(behind) > worst[0]:
            worst = min(behind), row.task
    if worst is None:
        return None, None
    eta_ms, task = worst
    return (
        f"{task}'s only caught-up copy is here; its standby is caught up in {_said(eta_ms)}",
        eta_ms,
    )


def _said(ms: int) -> str:
    return duration(ms / 1_000)
