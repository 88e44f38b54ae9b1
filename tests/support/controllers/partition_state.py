"""What a controller keeps of a partition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a controller keeps of a partition.

    ``replicas``, ``adding`` and ``removing`` (RS, AR, RR) and ``isr`` are brokers in Kafka's
    order; without a leader it is None.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def in_progress(self) -> bool:
        """Whether it is listed as being reassigned."""
        return bool(self.adding or self.removing)
