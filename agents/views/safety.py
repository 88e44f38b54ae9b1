"""Whether an instance can be stopped now, for people and programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.ids import TaskId
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.safety import Safety, safe_to_stop
from caughtup.models.what_if.setting import Playable, WhatIfSetting

#: A task may stand still for so long where nobody says otherwise, and no service has seen for how
#: long the application's stand still: a session timeout and a rebalance.
WITHIN_SECONDS = 60.0


def asked_of(
    group: Playable,
    client: str,
    within_seconds: float,
    etas_ms: dict[tuple[str, TaskId], int | None] | None = None,
    *,
    leave_group: bool,
    between_steps: Callable[[], None] = lambda: None,
) -> Safety:
    """Play the stop of an instance. Raises UnknownClientError.

    ``between_steps`` is called now and then, and may raise to end it.
    """
    return safe_to_stop(
        group,
        client,
        within_ms=round(within_seconds * 1_000),
        setting=WhatIfSetting(),
        etas_ms=etas_ms or {},
        leave_group=leave_group,
        between_steps=between_steps,
    )


def safety_fields(group: Playable, safety: Safety) -> dict[str, Any]:
    """Return the JSON object of ``caughtup safe`` and of the service's answer.

    ``open_configs``: those by which it was played and of which other values are possible, too.
    """
    return {
        "safe": safety.safe,
        "known": safety.known,
        "reason": safety.reason,
        "still_ms": safety.still_ms,
        "task": safety.task,
        "safe_in_ms": safety.safe_in_ms,
        "within_ms": safety.within_ms,
        "open_configs": group.open_configs,
    }


def etas_of(state: ClusterState, group: str) -> dict[tuple[str, TaskId], int | None]:
    """Return in how many ms each copy that is behind will be caught up, None if nobody knows."""
    watch = state.watches.get(group)
    copies = watch.copies.values() if watch else ()
    return {(one.copy.process, one.copy.task): _eta_ms(one) for one in copies}


def _eta_ms(copy: CopyAssessment) -> int | None:
    eta = copy.figures.eta
    return None if eta is None or math.isinf(eta.seconds) else round(eta.seconds * 1_000)
