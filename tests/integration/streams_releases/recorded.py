"""``caughtup`` whose decisions are written to a file; changed decisions of the same generations.

Each decision is what ``learn`` was called with, and its result, so that a changed decision of the
same generation can be judged as the service would have judged it.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from caughtup.models.decisions import deciding
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.learned import Learned, LearningResult, learn
from tests.models.learning.changed import changes


class Decided(NamedTuple):
    """A generation that the service decided."""

    before: Learned
    generation: StreamsGeneration
    inputs: GenerationInputs
    seen_ms: int
    result: str


def recording(path: Path) -> Callable[..., tuple[Learned, LearningResult]]:
    """Return ``learn``, which also writes to a file."""

    def learned(
        before: Learned, generation: StreamsGeneration, inputs: GenerationInputs, seen_ms: int
    ) -> tuple[Learned, LearningResult]:
        after, verdict = learn(before, generation, inputs, seen_ms)
        with path.open("ab") as file:
            pickle.dump(Decided(before, generation, inputs, seen_ms, verdict.result), file)
        return after, verdict

    return learned


def read(path: Path) -> list[Decided]:
    """Return the last decision of each generation, by group and generation."""
    found: dict[tuple[str, int], Decided] = {}
    with path.open("rb") as file:
        while file.peek(1):
            one: Decided = pickle.load(file)
            found[one.generation.group, one.generation.generation] = one
    return [found[key] for key in sorted(found)]


def judged_changes(decided: list[Decided], count: int, seed: int) -> dict[str, Counter[str]]:
    """Return the results of changed decisions, by kind of change and by size of the group.

    Changed are those of the generations after each group's fifth that are a match or consistent:
    ``count`` times of each kind.
    """
    rng, seen = random.Random(seed), Counter[str]()
    found: dict[str, Counter[str]] = {}
    for one in decided:
        seen[one.generation.group] += 1
        if seen[one.generation.group] <= 5 or one.result not in ("match", "consistent"):
            continue
        for kind, generation in changes(one.generation, rng, count):
            _, verdict = learn(one.before, generation, one.inputs, one.seen_ms)
            for name in (kind, f"{len(one.inputs.scenario.tasks)} tasks"):
                found.setdefault(name, Counter())[verdict.result] += 1
    return found


def command(path: Path) -> list[str]:
    """Return the command of ``caughtup`` that appends its decisions to a file."""
    root = str(Path(__file__).parents[3])
    program = f"import sys; sys.path.insert(0, {root!r}); from {__name__} import _run; _run()"
    return [sys.executable, "-c", program, str(path)]


def _run() -> None:
    deciding.learn = recording(Path(sys.argv.pop(1)))
    from caughtup.agents.main import program

    program()
