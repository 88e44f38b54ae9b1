"""A generation in the form that a replay reads, directly from the models."""

from __future__ import annotations

from caughtup.models.assignment.compact import scenario_record
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.records.fields import json_values
from caughtup.models.replay.recorded import RecordedGeneration


def recorded_generation(
    generation: StreamsGeneration, inputs: GenerationInputs
) -> RecordedGeneration:
    """Return a generation with the inputs that ``gather_inputs`` found."""
    return RecordedGeneration(
        group=generation.group,
        generation=generation.generation,
        as_of_ms=generation.as_of_ms,
        scenario=json_values(scenario_record(inputs.scenario)),
        assigned={
            "probing_rebalance_needed": generation.next_rebalance() is not None,
            "clients": {
                str(process): {
                    "active": [str(task) for task in sorted(client.active())],
                    "standby": [str(task) for task in sorted(client.standby())],
                    "warmup": [],
                }
                for process, client in generation.clients.items()
            },
        },
        offset_sums={
            str(process): {str(task): s for task, s in sorted(client.offset_sums.items())}
            for process, client in generation.clients.items()
        },
        doubts=inputs.unknown,
    )
