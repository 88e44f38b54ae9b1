"""Connect groups' generations out of a batch of records: the costly part, on any thread."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.connect.generation import ConnectGeneration, read_connect_generation
from caughtup.models.wire.connect_protocol import PROTOCOL_TYPE
from caughtup.models.wire.group_metadata import GroupMetadata

#: What was read of a Connect group, or what failed although nothing should.
ReadGeneration = ConnectGeneration | Exception


def read_connect_groups(
    groups: Mapping[str, GroupMetadata | None],
) -> dict[str, ReadGeneration]:
    """Read the generations of the Connect groups that have workers, in the order of their names."""
    found: dict[str, ReadGeneration] = {}
    for group, metadata in groups.items():
        if metadata is None or metadata.protocol_type != PROTOCOL_TYPE:
            continue
        try:
            generation = read_connect_generation(group, metadata)
        except Exception as error:  # noqa: BLE001 - it is told of where the group is taken
            found[group] = error
        else:
            if generation is not None:
                found[group] = generation
    return dict(sorted(found.items()))
