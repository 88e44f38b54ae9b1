"""What a generation was decided from, where its leader told it (``application_state``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId
from caughtup.models.records.recommendations import KnownConfigRecord

APPLICATION = "application"


def leader_inputs(
    generation: StreamsGeneration, state: ApplicationState, gathered: GenerationInputs
) -> GenerationInputs:
    """Put what the leader told in the place of what was gathered from outside.

    Nothing is inferred or assumed then. What remains unknown is what it left out, and members
    whose subscriptions can't be read.
    """
    name = f"{generation.group}/{generation.generation}"
    skipped = [doubt for doubt in gathered.unknown if doubt.startswith("member left out")]
    ends = {
        task: _end_offset_sum(generation, state, task) or gathered.ends.get(task)
        for task, one in state.scenario.tasks.items()
        if one.stateful
    }
    return replace(
        gathered,
        scenario=replace(state.scenario, name=name),
        ends=ends,
        unknown=(*skipped, *state.left_out),
        inferred=(),
        assumed=(),
        changelogs_from=APPLICATION,
        tentative=False,
        contradicted=tuple(_contradicted(state, gathered)),
        configs=tuple(
            KnownConfigRecord(
                name, _text(value), _text(value) if isinstance(value, list) else value, "read"
            )
            for name, value in sorted(state.scenario.config.items())
            if value is not None
        ),
    )


def _text(value: int | str | list[str]) -> str:
    return (",".join(value) or "none") if isinstance(value, list) else str(value)


def _contradicted(state: ApplicationState, gathered: GenerationInputs) -> Iterator[str]:
    """Name the configs that the settings give, and the application runs otherwise."""
    runs = state.scenario.config
    for name, value in sorted(gathered.scenario.config.items()):
        if name not in gathered.assumed and name in runs and runs[name] != value:
            yield f"{name}: {value} in the settings, {runs[name]} in the application"


def _end_offset_sum(
    generation: StreamsGeneration, state: ApplicationState, task: TaskId
) -> EndOffsetSum | None:
    """Work out a task's end offset sum from a client's lag and what it has; None if none tells.

    One that reported nothing lags by the whole log; others by what is beyond their sum, unless
    that lies beyond the end.
    """
    found: int | None = None
    for process in state.scenario.clients:
        lag = state.scenario.lag_of(process, task)
        offset_sum = generation.clients[process].offset_sums.get(task, 0)
        if lag is None or lag < 0 or offset_sum < 0:
            continue
        if offset_sum == 0:
            return EndOffsetSum(lag, lag)
        found = max(found or 0, offset_sum + lag)
    return None if found is None else EndOffsetSum(found, found)
