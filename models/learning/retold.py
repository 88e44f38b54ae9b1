"""What is known of an application's configs, once its settings tell something else."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.learning.learned import Learned
from caughtup.models.learning.ranges import agreeing
from caughtup.models.learning.told import Told, allowing


def retold(learned: Learned, told: Told) -> Learned:
    """Return what is known under other settings.

    What was learned stays as far as it agrees with what is told now. Nothing does where settings
    no longer tell what they told: what they had ruled out is possible again.
    """
    if told == learned.told:
        return learned
    before = learned.told
    adds = (
        told.configs.items() >= before.configs.items()
        and before.tags in (None, told.tags)
        and before.assignor in (None, told.assignor)
        and before.strategy in (None, told.strategy)
        and all(a in (None, b) for a, b in zip(before.costs, told.costs, strict=True))
    )
    if not adds or learned.hypotheses is None:
        return Learned(told)
    left = agreeing(learned.hypotheses, allowing(told, learned.hypotheses))
    return replace(learned, told=told, hypotheses=left) if left else Learned(told)
