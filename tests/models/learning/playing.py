"""Groups of applications played and learned from, and tables of how that went."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from caughtup.models.learning.contradiction import ASSIGNOR, is_open
from caughtup.models.learning.learned import Learned, LearningResult, learn
from caughtup.models.learning.ranges import LAG, RELEASE, STANDBYS, WARM_UPS, Hypotheses, spans_of
from caughtup.models.learning.told import ToldConfigs
from caughtup.models.offsets import LONG_MAX
from caughtup.models.parameters import STRATEGY, TAGS
from tests.models.learning.applications import Application, Played
from tests.models.learning.truths import Truth

GENERATIONS = 20


@dataclass(frozen=True)
class Step:
    """One generation: what was known before and after it, and what was found."""

    number: int
    played: Played
    before: Learned
    after: Learned
    verdict: LearningResult


def steps(
    app: Application,
    learned: Learned | None = None,
    generations: int = GENERATIONS,
    change: Callable[[int], Truth] | None = None,
) -> Iterator[Step]:
    """Play an application and learn; ``change`` says what its configs are in each generation."""
    after = learned or Learned()
    for number in range(generations):
        if change is not None:
            app.truth = change(number)
        played = app.rebalance()
        app.live()
        before = after
        after, verdict = learn(before, played.generation, played.inputs, played.seen_ms)
        yield Step(number, played, before, after, verdict)


def told_of(truth: Truth, rng: random.Random, **instead: int) -> ToldConfigs:
    """Return settings that tell some of the configs, of which some may be told wrongly."""
    configs = {
        STANDBYS: truth.standbys,
        WARM_UPS: truth.warm_ups,
        LAG: truth.lag,
    }
    some = {name: value for name, value in configs.items() if rng.random() < 0.6}
    tells_tags = truth.assignor == "high_availability" and rng.random() < 0.5
    return ToldConfigs(
        some | instead,
        truth.tags if tells_tags else None,
        truth.assignor if rng.random() < 0.5 else None,
    )


def is_known(name: str, hypotheses: Hypotheses) -> bool:
    """Return whether a config is known, or can't matter.

    A sticky assignor reads no lags, warm-ups or tags, and tags mean nothing without standbys.
    ``acceptable.recovery.lag`` counts as known once it is bounded on both sides. A strategy can't
    matter without racks, and a release where what is left decides alike, but that isn't counted.
    """
    read_by = [one for one in hypotheses if one.algorithm.assignor == "high_availability"]
    if name in (LAG, WARM_UPS, TAGS):
        if not read_by:
            return True
        hypotheses = tuple(read_by)
    if name == TAGS and not any(one.standbys.high for one in hypotheses):
        return True
    if name == LAG:
        spans = spans_of(hypotheses, LAG)
        return spans[0].low > 0 and spans[-1].high < LONG_MAX
    return not is_open(name, hypotheses)


def known_by_generation(learned: Iterable[Step]) -> dict[str, int]:
    """Return from which generation on, from 1, each config is known to the end; 0 if it isn't."""
    found: dict[str, int] = {}
    for step in learned:
        for name in (STANDBYS, WARM_UPS, LAG, TAGS, ASSIGNOR, STRATEGY, RELEASE):
            if not is_known(name, step.after.hypotheses or ()):
                found[name] = 0
            elif not found.get(name):
                found[name] = step.number + 1
    return found


class Tables:
    """Counts over many groups, and prints them."""

    def __init__(self) -> None:
        self.groups = 0
        self.decisions = 0
        self._known: dict[str, Counter[int]] = {}
        self._results: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._foreseen: Counter[int] = Counter()

    def add(self, group: list[Step]) -> None:
        """Count a group's generations."""
        self.groups += 1
        for name, number in known_by_generation(group).items():
            self._known.setdefault(name, Counter())[number] += 1
        for step in group:
            self.decisions += step.verdict.decisions
            self._results[step.verdict.result] += 1
            foreseen = step.verdict.result == "match" and not step.verdict.narrowed
            self._foreseen[step.number + 1] += foreseen
            if step.number >= 5:
                self._late[step.verdict.result] += 1

    def text(self) -> str:
        """Write the tables as docs/measured.md has them."""
        after = (1, 2, 3, 5, 10, 15, 20)
        lines = [
            "| known after generation | " + " | ".join(map(str, after)) + " |",
            "|---|" + "---|" * len(after),
        ]
        for name, numbers in self._known.items():
            shares = [
                sum(count for number, count in numbers.items() if 0 < number <= most) / self.groups
                for most in after
            ]
            lines.append(f"| {name} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
        foreseen = " | ".join(f"{self._foreseen[n] / self.groups:.0%}" for n in after)
        lines.append(f"| that generation was foreseen | {foreseen} |")
        for title, results in (("all", self._results), ("after the fifth", self._late)):
            every = sum(results.values())
            parts = ", ".join(f"{results[r] / every:.1%} {r}" for r in sorted(results))
            lines.append(f"{title} {every:,} generations: {parts}")
        generations = sum(self._results.values())
        lines.append(f"{self.decisions / generations:.1f} decisions a generation")
        return "\n".join(lines)


def altered(truth: Truth, name: str, rng: random.Random) -> tuple[Truth, int]:
    """Return a truth as somebody tells it who has one config wrong, and that value."""
    wrong = {
        STANDBYS: [n for n in range(4) if n != truth.standbys],
        WARM_UPS: [n for n in range(1, 9) if n != truth.warm_ups],
        LAG: [n for n in (0, 10, 100, 1_000, 10_000, 100_000) if n != truth.lag],
    }
    value = rng.choice(wrong[name])
    field = {STANDBYS: "standbys", WARM_UPS: "warm_ups", LAG: "lag"}[name]
    return replace(truth, **{field: value}), value
