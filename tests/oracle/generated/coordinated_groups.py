"""Groups made from a seed whose coordinator assigns, and members that come and go round by round."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from caughtup.models.ids import TaskId

ROUNDS = 6


@dataclass(frozen=True)
class CoordinatedGroup:
    """What a story of rounds has: ``rounds`` are the members of each, by id with their processes."""

    seed: int
    subtopologies: dict[str, tuple[int, bool]]
    standbys: int
    rounds: tuple[dict[str, str], ...]

    def offsets(self, number: int, member: str, tasks: Sequence[TaskId]) -> dict[TaskId, int]:
        """Make the offsets that a member reports in a round: of some tasks, often the same."""
        rng = random.Random(f"{self.seed} {number} {member}")
        few = rng.sample(tasks, min(len(tasks), rng.choice([0, 2, 10])))
        return {task: rng.choice([0, 7, rng.randint(0, 10**6)]) for task in sorted(few)}


def generate_group(seed: int) -> CoordinatedGroup:
    """Make subtopologies (or topics), and rounds of members of processes."""
    rng = random.Random(seed)
    count = rng.choice([1, 1, 2, 3, 12])
    widths = {
        str(number): (rng.choice([1, 3, rng.randint(1, 60)]), rng.random() < 0.7)
        for number in range(count)
    }
    return CoordinatedGroup(seed, widths, rng.choice([0, 0, 1, 2]), tuple(_rounds(rng)))


def _rounds(rng: random.Random) -> Iterator[dict[str, str]]:
    processes: dict[str, list[str]] = {}
    for _ in range(rng.choice([1, 3, rng.randint(1, 30)])):
        _start(rng, processes)
    for _ in range(ROUNDS):
        yield {member: process for process, own in processes.items() for member in own}
        for _ in range(rng.randint(0, 3)):
            if rng.random() < 0.5 or len(processes) < 2:
                _start(rng, processes)
            else:
                del processes[rng.choice(sorted(processes))]


def _start(rng: random.Random, processes: dict[str, list[str]]) -> None:
    own = [str(UUID(int=rng.getrandbits(128))) for _ in range(rng.choice([1, 1, 2, 4]))]
    processes[str(UUID(int=rng.getrandbits(128)))] = own
