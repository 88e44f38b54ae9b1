"""The state of a partition that a controller keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition that a controller keeps.

    ``replicas``, ``adding`` and ``removing`` (RS, AR, RR) and ``isr`` are brokers in Kafka's order;
    the leader is None if there is none.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def in_progress(self) -> bool:
        """Whether the controller lists it as being reassigned."""
        return bool(self.adding or self.removing)
