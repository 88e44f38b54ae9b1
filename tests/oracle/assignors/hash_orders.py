"""Java's orders of a set of clients, ignored: decisions that rest on one must differ then."""

from __future__ import annotations

from caughtup.models.assignors.java.hash_order import ClientHashOrder


def as_filled(self: ClientHashOrder, places: list[int]) -> list[int]:
    """Return places as they were put in."""
    return list(places)


def all_but_as_filled(self: ClientHashOrder, excluded: set[int]) -> list[int]:
    """Return everybody's places but some, as they were put in."""
    return [place for place in self.everyone if place not in excluded]
