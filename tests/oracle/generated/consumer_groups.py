"""Consumer groups made from a seed, as lines of ``caughtup assign``, round by round.

Members come, go, restart and resubscribe, topics grow and vanish, and what members say they own may
be of an earlier generation, claimed by another one, too, or of a topic that nobody reads any more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

ROUNDS = 5
_STICKY = ("sticky", "cooperative_sticky")
_RACKS = ("r1", "r2", "r3")


class ConsumerGroupStory:
    """A group whose rounds are asked for one after the other, each with the decision before it."""

    def __init__(self, seed: int, assignor: str) -> None:
        """Make topics and members from the seed."""
        self.seed, self.assignor = seed, assignor
        self._rng = random.Random(f"{seed} {assignor}")
        rng = self._rng
        self._racks = rng.random() < 0.5
        self._mixed = rng.random() < 0.6
        self._static = rng.random() < 0.3
        self._generation = 0
        self._topics: dict[str, Json] = {}
        for _ in range(rng.choice([1, 1, 2, 3, 5, 14])):
            self._make_topic()
        self._members: dict[str, Json] = {}
        for _ in range(rng.choice([1, 2, 3, 5, rng.randint(1, 30)])):
            self._join()

    def rounds(self) -> Iterator[Json]:
        """Yield each round's line; between two, ``decided`` takes the decision of the first."""
        for _ in range(ROUNDS):
            self._generation += 1
            yield {
                "name": f"seed {self.seed}, generation {self._generation}",
                "assignor": self.assignor,
                "topics": self._topics,
                "members": self._members,
            }
            self._change()

    def decided(self, members: Json) -> None:
        """Let members own what they were assigned."""
        rng = self._rng
        for name, member in self._members.items():
            if rng.random() < 0.93:  # else it missed the rebalance, and says what it had before
                member["owned"] = members[name]
                member["generation"] = self._generation
            if rng.random() < 0.03:
                member.pop("generation", None)
            if rng.random() < 0.03 and self.assignor not in ("uniform", "range_848"):
                other = self._members[rng.choice(sorted(self._members))]
                member["owned"] = [*member["owned"], *other["owned"][:2]]
            rng.shuffle(member["owned"])

    def _change(self) -> None:
        rng = self._rng
        for _ in range(rng.randint(0, 3)):
            happening = rng.random()
            if happening < 0.35 or len(self._members) < 2:
                self._join()
            elif happening < 0.6:
                del self._members[rng.choice(sorted(self._members))]
            elif happening < 0.75:
                member = self._members[rng.choice(sorted(self._members))]
                member["topics"] = self._subscription()
            elif happening < 0.85:
                self._make_topic()
            elif happening < 0.95:
                name = rng.choice(sorted(self._topics))
                topic = self._topics[name]
                self._topics[name] = self._topic(topic["partitions"] + rng.randint(1, 5))
            elif happening < 0.97 and not (self._mixed and self.assignor in _STICKY):
                name = rng.choice(sorted(self._topics))  # it is made again with fewer partitions
                self._topics[name] = self._topic(max(1, self._topics[name]["partitions"] - 2))
            elif len(self._topics) > 1:
                del self._topics[rng.choice(sorted(self._topics))]

    def _make_topic(self) -> None:
        rng = self._rng
        name = rng.choice(["orders", "clicks", "Z", "ä", "a.b"]) + str(rng.randint(0, 40))
        width = rng.choice([1, 3, rng.randint(1, 12), rng.randint(1, 60)])
        if name not in self._topics:
            self._topics[name] = self._topic(width)

    def _topic(self, width: int) -> Json:
        rng = self._rng
        topic: Json = {"partitions": width}
        if self._racks and rng.random() < 0.9:
            count = rng.choice([0, 1, 1, 2, 3])
            topic["racks"] = [rng.sample(_RACKS, rng.choice([count, 1])) for _ in range(width)]
        return topic

    def _subscription(self) -> list[str]:
        rng = self._rng
        names = sorted(self._topics)
        if self._mixed:
            names = rng.sample(names, rng.randint(0 if rng.random() < 0.1 else 1, len(names)))
        if rng.random() < 0.05:
            names.append("absent")
        rng.shuffle(names)
        return names

    def _join(self) -> None:
        rng = self._rng
        name = f"{rng.choice(['consumer', 'C', 'ü', 'zz'])}-{rng.randint(0, 10**6)}"
        member: Json = {"topics": self._subscription(), "owned": []}
        if self._static and rng.random() < 0.5:
            member["instance_id"] = f"instance-{rng.randint(0, 10**6)}"
        if self._racks and rng.random() < 0.8:
            member["rack"] = rng.choice([*_RACKS, "r1", "elsewhere"])
        self._members[name] = member
