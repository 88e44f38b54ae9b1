"""A config of an application as people are told it: its values, and how they are known."""

from __future__ import annotations

from dataclasses import dataclass

TOLD, READ, LEARNED, ASSUMED = "told", "read", "learned", "assumed"
PROVENANCES = (TOLD, READ, LEARNED, ASSUMED)


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """A config, the values it can have in words, and how that is known.

    ``provenance`` is ``told`` by the settings, ``read`` from the wire, ``learned`` from so many
    ``generations``, or ``assumed``: nothing rules anything out. ``value`` is what to go on with, in
    Kafka's terms. ``would_tell``: what would narrow it further, "" where there is one value.
    """

    name: str
    text: str
    value: int | str | None
    provenance: str
    generations: int = 0
    would_tell: str = ""

    @property
    def source(self) -> str:
        """Describe how it is known."""
        if self.provenance != LEARNED:
            return self.provenance
        plural = "" if self.generations == 1 else "s"
        return f"learned from {self.generations} generation{plural}"
