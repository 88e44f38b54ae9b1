"""What was learned of applications' configs, each up to a generation: kept while a group is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.decisions.last_by_group import MOST_GROUPS
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.learned import Learned, with_settings
from caughtup.models.learning.ranges import bounded
from caughtup.models.learning.told import ToldConfigs


class LearnedUntil(NamedTuple):
    """What is known by all generations up to one, whose state changed at ``as_of_ms``.

    ``placed``: changelog → subtopology, where what copies had told it.
    """

    learned: Learned
    generation: int
    as_of_ms: int
    placed: Mapping[str, int] = {}


class LearnedConfigs:
    """What is known of each group's configs. Nothing that is in it is ever changed."""

    def __init__(self) -> None:
        self._known: dict[str, LearnedUntil] = {}

    def of(self, group: str, told: ToldConfigs) -> Learned:
        """Return what is known of a group whose settings tell so much."""
        known = self._known.get(group)
        return Learned(told) if known is None else with_settings(known.learned, told)

    def holds(self, generation: StreamsGeneration) -> bool:
        """Return whether a generation was learned from: it is to be learned from but once."""
        known = self._known.get(generation.group)
        return (
            known is not None
            and generation.generation <= known.generation
            and generation.as_of_ms <= known.as_of_ms
        )

    def placed(self, group: str) -> Mapping[str, int]:
        """Return to which subtopologies changelogs of a group belong, as what copies had told."""
        known = self._known.get(group)
        return {} if known is None else known.placed

    def keep(
        self, generation: StreamsGeneration, learned: Learned, placed: Mapping[str, int]
    ) -> None:
        """Keep what is known once a generation was learned from."""
        suspected = bounded(learned.suspected)
        hypotheses = None if learned.hypotheses is None else bounded(learned.hypotheses)
        kept = replace(learned, hypotheses=hypotheses, suspected=suspected)
        known = LearnedUntil(kept, generation.generation, generation.as_of_ms, placed)
        self._known[generation.group] = known

    def restore(self, group: str, known: LearnedUntil | None) -> bool:
        """Keep what was written down earlier; None forgets.

        Returns False if there are too many groups for another one.
        """
        if known is None:
            self._known.pop(group, None)
            return True
        if group not in self._known and len(self._known) >= MOST_GROUPS:
            return False
        self._known[group] = known
        return True

    def forget(self, group: str) -> bool:
        """Forget a group; return whether anything was known of it."""
        return self._known.pop(group, None) is not None

    def newest(self, group: str) -> LearnedUntil | None:
        """Return what is known of a group as it is to be written down; None without anything."""
        return self._known.get(group)

    def groups(self) -> set[str]:
        """Name the groups of which anything is known."""
        return set(self._known)

    def each(self) -> Iterator[tuple[str, LearnedUntil]]:
        """Yield what is known of each group, by group, sorted."""
        yield from sorted(self._known.items(), key=lambda item: item[0])
