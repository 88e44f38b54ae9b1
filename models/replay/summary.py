"""Sums of a replay's rows, for each group and setting or for a whole fleet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from caughtup.models.replay.outcome import RECORDED, ReplayRow


@dataclass(slots=True)
class Summary:
    """The cost of a setting, over all changes of membership of the groups in it.

    Sums, except the imbalances, which are the greatest. ``undecided`` generations count nowhere
    else, ``doubtful`` ones do. ``offsets_copied`` is of the ``changes`` for which it is known, the
    others are in ``offsets_unknown``. ``unbalanced``: changes after which the group wasn't balanced
    before the next one, or ever. ``seconds_still`` sums the changes for which it is known, the
    others are in ``still_unknown``; ``longest_still_seconds`` is the greatest.
    """

    setting: str
    groups: set[str] = field(default_factory=set)
    generations: int = 0
    doubtful: int = 0
    undecided: int = 0
    changes: int = 0
    copies_built: int = 0
    offsets_copied: int = 0
    offsets_unknown: int = 0
    rebalances: int = 0
    seconds: float = 0.0
    estimated: bool = False
    paced: int = 0
    cold_hand_overs: int = 0
    avoidable_cold_hand_overs: int = 0
    active_imbalance: float = 0.0
    copy_imbalance: float = 0.0
    unbalanced: int = 0
    seconds_still: float = 0.0
    longest_still_seconds: float = 0.0
    still_unknown: int = 0

    @property
    def recorded(self) -> bool:
        """Whether these are the sums of what was recorded."""
        return self.setting == RECORDED

    def add(self, row: ReplayRow) -> None:
        """Add one more row of this setting."""
        self.groups.add(row.group)
        self.generations += 1
        self.undecided += row.error is not None
        self.doubtful += row.error is None and row.doubts > 0
        figures = row.figures
        if figures is None:
            return
        self.changes += 1
        self.copies_built += figures.copies_built
        self.offsets_copied += figures.offsets_copied or 0
        self.offsets_unknown += figures.offsets_copied is None
        self.rebalances += figures.rebalances
        self.seconds += figures.seconds
        self.estimated |= figures.estimated
        self.paced += figures.paced
        self.cold_hand_overs += figures.cold_hand_overs
        self.avoidable_cold_hand_overs += figures.avoidable_cold_hand_overs
        self.active_imbalance = max(self.active_imbalance, figures.active_imbalance)
        self.copy_imbalance = max(self.copy_imbalance, figures.copy_imbalance)
        self.unbalanced += not figures.balanced
        self.seconds_still += figures.seconds_still or 0.0
        longest = figures.longest_still_seconds or 0.0
        self.longest_still_seconds = max(self.longest_still_seconds, longest)
        self.still_unknown += figures.seconds_still is None


def summarise(rows: Iterable[ReplayRow], *, by_group: bool) -> list[Summary]:
    """Return the sums of rows by setting, and by group if asked, in order of first rows."""
    found: dict[tuple[str, str], Summary] = {}
    for row in rows:
        key = (row.group if by_group else "", row.setting)
        if key not in found:
            found[key] = Summary(row.setting)
        found[key].add(row)
    return list(found.values())
