"""A generation as a replay takes it, straight from what the models make of the wire."""

from __future__ import annotations

from caughtup.models.assignment.compact import scenario_record
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.records.fields import json_values
from caughtup.models.replay.recorded import RecordedGeneration


def recorded_generation(
    generation: StreamsGeneration, inputs: GenerationInputs
) -> RecordedGeneration:
    """Put down a generation with what ``gather_inputs`` made of it."""
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
