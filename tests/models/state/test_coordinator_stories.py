"""Stories of KIP-848 groups, written as records: each epoch is decided again as its coordinator did."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest

from caughtup.models.state.cluster import ClusterState
from tests.support.groups.coordinator import PlayedGroup, know, read, topic_id
from tests.support.sizes import daily

SEEDS = range(daily(12, 30))
STEPS = 14
#: From this number on, a step changes topics: what was written before is read before.
_TOPICS_CHANGE = 0.78


class Story:
    """A group made from a seed, whose members and topics change step by step."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.group = PlayedGroup("g", rng.choice([None, "uniform", "range"]))
        if self.group.assignor is None:
            self.group.default = rng.choice(["uniform", "range"])
        self.mixed = rng.random() < 0.5
        self.pattern = "t.*" if rng.random() < 0.3 else None
        for number in range(rng.choice([1, 2, 3, 9])):
            self.group.topics[f"t{number}"] = topic_id(rng), rng.choice([1, 3, rng.randint(1, 40)])

    def steps(self) -> Iterator[None]:
        if self.pattern:
            self._join(first=True)
            self.group.resolve(self.pattern, self.group.topics, min(self.group.members))
        for _ in range(self.rng.choice([1, 2, 5, 20])):
            self._join()
        yield
        for _ in range(STEPS):
            happening = self.rng.random()
            if happening >= _TOPICS_CHANGE or self.rng.random() < 0.7:
                yield
            self._step(happening)
        yield

    def _step(self, happening: float) -> None:
        rng, group = self.rng, self.group
        anyone = rng.choice(sorted(group.members))
        if happening < 0.3:
            self._join()
        elif happening < 0.5 and len(group.members) > 1:
            group.leave(anyone)
            if rng.random() < 0.8:
                group.assign(rng.choice(sorted(group.members)))
        elif happening < 0.65:
            one = group.members[anyone]
            group.join(anyone, self._topics(), one.subscribed_topic_regex, one.instance_id)
        elif happening < _TOPICS_CHANGE:
            if group.members[anyone].instance_id and anyone in group.target:
                group.replace(anyone, str(UUID(int=rng.getrandbits(128))))
        elif happening < 0.9:
            name = rng.choice(sorted(group.topics))
            known, count = group.topics[name]
            group.topics[name] = known, count + rng.randint(1, 4)
            group.assign(anyone)
        else:
            group.topics[f"t{rng.randint(0, 30)}"] = topic_id(rng), rng.randint(1, 9)
            if self.pattern:
                group.resolve(self.pattern, group.topics, anyone)

    def _join(self, *, first: bool = False) -> None:
        rng = self.rng
        instance = f"i{rng.randint(0, 9)}" if rng.random() < 0.2 else None
        taken = {one.instance_id for one in self.group.members.values()}
        name = str(UUID(int=rng.getrandbits(128)))
        regex = self.pattern if first or rng.random() < 0.8 else None
        topics = () if regex and rng.random() < 0.8 else self._topics()
        self.group.join(name, topics, regex, None if instance in taken else instance)

    def _topics(self) -> list[str]:
        names = sorted(self.group.topics)
        return self.rng.sample(names, self.rng.randint(1, len(names))) if self.mixed else names


@pytest.mark.parametrize("most", [1 << 31, 3])
def test_every_epoch_of_a_story_matches(most: int) -> None:
    found: Counter[str] = Counter()
    for seed in SEEDS:
        story, state = Story(seed), ClusterState("c", {})
        for _ in story.steps():
            know(state, story.group)
            read(state, story.group.take(), most)
        kinds = state.group_decisions.counts("g")
        assert not state.faults.newest(), seed
        for kind, count in kinds.items():
            found[kind.result] += count
            if kind.result != "match":
                print(f"seed {seed}: {kind}, {state.group_decisions.last('g')}")
    print(f"{found['match']} epochs of {len(SEEDS)} stories matched: {found}")
    assert found.keys() == {"match"}, found
