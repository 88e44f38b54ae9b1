"""Recorded generations, and the same ones decided again under other settings.

Each generation is decided as ``caughtup assign`` decides its scenario. After each change of
membership, the group is played until it is balanced; what was recorded until the next change is
counted by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.decision import DecisionLine
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import CaughtupError
from caughtup.models.replay.figures import (
    ReplayFigures,
    played_figures,
    recorded_figures,
    standing_still,
)
from caughtup.models.replay.recorded import Episode, RecordedGeneration, episodes, observed_rate
from caughtup.models.replay.settings import ReplaySetting

#: The name of the setting of recorded rows.
RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One generation under one setting, or as it was recorded.

    ``decision`` is as ``caughtup assign`` prints it. ``change`` and ``figures`` are set if the
    members changed; the next change came ``seconds_until_change`` later. ``doubts`` is the number
    of uncertain inputs. ``error`` is why the generation could not be decided.
    """

    group: str
    generation: int
    as_of_ms: int
    setting: str
    doubts: int
    decision: DecisionLine | None = None
    change: str | None = None
    seconds_until_change: float | None = None
    figures: ReplayFigures | None = None
    error: str | None = None


def replay_group(
    recorded: Iterable[RecordedGeneration], settings: Sequence[ReplaySetting | None]
) -> Iterator[ReplayRow]:
    """Yield one group's generations under each setting; None stands for the recorded one.

    A generation that can't be decided yields a row with its error.
    """
    generations, refused = [], []
    for one in sorted(recorded, key=lambda one: (one.as_of_ms, one.generation)):
        try:
            parse_scenario(one.scenario)
        except CaughtupError as error:
            refused.append((one, error))
        else:
            generations.append(one)
    rate = observed_rate(generations)
    parts = list(episodes(generations))
    for setting in settings:
        name = RECORDED if setting is None else str(setting)
        for one, problem in refused:
            yield _refusal(one, name, problem)
        for episode in parts:
            if setting is None:
                yield from _recorded_rows(episode)
            else:
                yield from _replayed_rows(episode, setting, rate)


def _refusal(one: RecordedGeneration, setting: str, error: CaughtupError) -> ReplayRow:
    return ReplayRow(
        one.group, one.generation, one.as_of_ms, setting, len(one.doubts), error=str(error)
    )


def _recorded_rows(episode: Episode) -> Iterator[ReplayRow]:
    figures = recorded_figures(episode)
    for one in episode.generations:
        row = _row(episode, one, RECORDED)
        yield replace(
            row, decision=one.assigned, figures=figures if row.change is not None else None
        )


def _replayed_rows(
    episode: Episode, setting: ReplaySetting, rate: float | None
) -> Iterator[ReplayRow]:
    for one in episode.generations:
        row = _row(episode, one, str(setting))
        try:
            given = setting.of(one.scenario)
            scenario = parse_scenario(given)
            if row.change is None:
                yield replace(row, decision=decide(scenario).to_dict())
            else:
                decision, figures = played_figures(scenario, rate)
                still = standing_still(given, rate, one.as_of_ms)
                if still is not None:
                    figures = replace(
                        figures,
                        seconds_still=still.seconds,
                        longest_still_seconds=still.longest_seconds,
                    )
                yield replace(row, decision=decision.to_dict(), figures=figures)
        except CaughtupError as error:
            yield replace(row, error=str(error))


def _row(episode: Episode, one: RecordedGeneration, setting: str) -> ReplayRow:
    until = None
    first = one is episode.generations[0]
    if first and episode.until_ms is not None:
        until = (episode.until_ms - one.as_of_ms) / 1000
    return ReplayRow(
        one.group,
        one.generation,
        one.as_of_ms,
        setting,
        len(one.doubts),
        change=episode.change if first else None,
        seconds_until_change=until,
    )
