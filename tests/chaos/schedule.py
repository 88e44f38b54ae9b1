"""Which faults there are, and a schedule of them as a value: the same seed, the same schedule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of fault: how often it is drawn, and how long it lasts, in seconds.

    ``recovers_seconds`` bounds the time from its end until all is right again. ``brokers`` says
    whether it is one of the cluster's: two of those at once may leave no cluster to tell of.
    ``sharing``: whether it comes only where instances share the groups.
    """

    weight: int
    shortest: float
    longest: float
    recovers_seconds: float
    brokers: bool = False
    sharing: bool = False


KINDS: dict[str, Kind] = {
    "broker killed": Kind(4, 1, 15, 60, brokers=True),
    "broker suspended": Kind(3, 5, 20, 60, brokers=True),
    "coordinator killed": Kind(2, 1, 15, 60, brokers=True),
    "all brokers down": Kind(1, 3, 15, 90, brokers=True),
    "unclean election": Kind(1, 5, 10, 90, brokers=True),
    "offsets log moved": Kind(3, 5, 15, 60, brokers=True),
    "throttled reassignment": Kind(2, 12, 25, 60, brokers=True),
    "half-open network": Kind(3, 5, 30, 60),
    "half-open to one broker": Kind(2, 5, 30, 60),
    "service killed": Kind(4, 0, 5, 45),
    "service suspended": Kind(3, 5, 20, 45),
    "second instance": Kind(2, 5, 15, 45),
    "hand-over": Kind(2, 5, 15, 45),
    "own topic deleted": Kind(2, 5, 10, 60),
    "poison": Kind(3, 2, 8, 30),
    "hostile member": Kind(3, 3, 10, 30),
    "instance ended": Kind(4, 1, 10, 45, sharing=True),
    "instance cut off": Kind(4, 5, 25, 45, sharing=True),
    "all instances killed": Kind(1, 0, 5, 45, sharing=True),
}
#: What comes where one instance is active.
ONE_ACTIVE = tuple(name for name, kind in KINDS.items() if not kind.sharing)
#: What may come during another fault: it harms no broker, and needs none to be inflicted.
COMPANIONS = ("service killed", "service suspended", "half-open network")
_ACCOMPANIED = 0.2
_CALM_SECONDS = (2.0, 15.0)


class Fault(NamedTuple):
    """A fault: after how many calm seconds it comes, and how long it lasts.

    ``target`` chooses a broker, a partition or a topic, ``seed`` what is drawn while it is
    inflicted. ``companion`` comes half-way through it.
    """

    kind: str
    calm_seconds: float
    seconds: float
    target: int
    seed: int
    companion: str | None = None

    def __str__(self) -> str:
        beside = f" with {self.companion}" if self.companion else ""
        return f"{self.kind} #{self.target}{beside} for {self.seconds:.1f} s"


def faults(seed: int, kinds: tuple[str, ...] = ONE_ACTIVE) -> Iterator[Fault]:
    """Draw faults without end: first each kind once in any order, then by their weights."""
    random = Random(seed)
    first = random.sample(kinds, len(kinds))
    weights = [KINDS[kind].weight for kind in kinds]
    while True:
        (drawn,) = random.choices(kinds, weights)
        kind = first.pop() if first else drawn
        companion = random.choice(COMPANIONS) if random.random() < _ACCOMPANIED else None
        about = KINDS[kind]
        yield Fault(
            kind,
            calm_seconds=round(random.uniform(*_CALM_SECONDS), 1),
            seconds=round(random.uniform(about.shortest, about.longest), 1),
            target=random.randrange(1_000),
            seed=random.getrandbits(32),
            companion=companion if about.brokers else None,
        )


def schedule(seed: int, count: int) -> tuple[Fault, ...]:
    """Return the first faults of a seed."""
    return tuple(islice(faults(seed), count))
