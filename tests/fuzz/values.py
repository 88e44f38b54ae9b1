"""Names and numbers for hostile records: mostly plausible, and often at the ends of what they can be."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from caughtup.models.ids import NUMBER_MAX
from caughtup.models.wire.bounds import LATEST_MS
from tests.support.groups.records import START_MS

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
#: The groups that misbehave; those that mustn't be harmed are in twins.py.
GROUPS = (*(f"mallory-{number}" for number in range(12)), "", "%s", 'm"\\\n{x="y"}', "mällory")
#: Topics that everybody reads, and such as only they write about.
TOPICS = ("clicks", "orders-in", "evil", "evil-changelog", "", 'e"\\\n%d', "gelöscht")
#: Topics whose end offsets they may tell of.
OWN_TOPICS = TOPICS[2:]
CLICKS_ID = b"clicks' very id."
TEXTS = (
    "",
    "a",
    "x" * 300,
    "stream",
    "consumer",
    "connect",
    "range",
    "\0",
    "字",
    "%s%d",
    '"',
    "\n",
)
OFFSETS = (
    -1,
    0,
    1,
    -2,
    -3,
    -4,
    INT_MAX,
    INT_MIN,
    1 << 53,
    1 << 62,
    LONG_MAX - 1,
    LONG_MAX,
    LONG_MIN,
)
TIMES = (-1, 0, 1, -2, LATEST_MS, LATEST_MS + 1, 1 << 53, LONG_MAX, LONG_MIN)
NUMBERS = (-1, NUMBER_MAX, NUMBER_MAX + 1, INT_MAX, INT_MIN, 1 << 16)
EPOCHS = (-1, -2, -3, 0, INT_MAX, INT_MIN)

Choice = TypeVar("Choice")


class Values:
    """Draws values; ``extreme`` is how often a number is at an end of what it can be."""

    def __init__(self, random: Random, extreme: float = 0.15) -> None:
        self.random = random
        self.extreme = extreme
        self.now_ms = START_MS

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, *choices: Choice) -> Choice:
        return self.random.choice(choices)

    def offset(self) -> int:
        if self.chance(self.extreme):
            return self.random.choice(OFFSETS)
        return self.random.randint(0, 200_000)

    def time_ms(self) -> int:
        if self.chance(self.extreme):
            return self.random.choice(TIMES)
        return self.now_ms - self.random.randint(-5_000, 3_600_000)

    def number(self) -> int:
        """A partition or a subtopology."""
        if self.chance(self.extreme / 3):
            return self.random.choice(NUMBERS)
        return self.random.randint(0, 3)

    def epoch(self) -> int:
        if self.chance(self.extreme):
            return self.random.choice(EPOCHS)
        return self.random.randint(0, 40)

    def int32(self) -> int:
        return self.random.choice((*EPOCHS, self.random.randint(INT_MIN, INT_MAX)))

    def int64(self) -> int:
        return self.random.choice((*OFFSETS, self.random.randint(LONG_MIN, LONG_MAX)))

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def maybe_text(self) -> str | None:
        return None if self.chance(0.3) else self.text()

    def group(self) -> str:
        return self.random.choice(GROUPS)

    def topic(self) -> str:
        return self.random.choice(TOPICS)

    def topic_id(self) -> bytes:
        """Draw one of few topic ids, so that two topics may have the same."""
        return CLICKS_ID if self.chance(0.2) else self.own_topic_id()

    def own_topic_id(self) -> bytes:
        return bytes(15) + bytes((self.random.randint(0, 9),))

    def several(self, most: int = 3) -> range:
        return range(self.random.randint(0, most))
