"""What is known of an application's configs: the lines of ``/api/configs`` and of ``--format json``."""

from __future__ import annotations

from caughtup.models.records.fields import ABSENT, Absent, AnyGroup, Name, Part, Topic
from caughtup.models.records.recommendations import KnownConfigRecord


class ConfigLine(KnownConfigRecord, kw_only=True):
    """A config of an application; the page names the group once. ``known``: how, in words."""

    known: str
    group: AnyGroup | Absent = ABSENT

    @classmethod
    def of(cls, config: KnownConfigRecord, group: str) -> ConfigLine:
        """Return the line of a config."""
        return cls(
            config.name,
            config.values,
            config.value,
            config.provenance,
            config.generations,
            config.would_tell,
            known=config.source,
            group=group,
        )


class ChangelogsLine(Part):
    """An application's changelogs by subtopology.

    ``from_one_generation``: all that is known of its configs is from its newest generation.
    ``changelogs_from``: where they are from, in words; ``changelogs_known``: whether a decision
    confirmed them. All three are absent where no changelog was found.
    """

    group: AnyGroup
    from_one_generation: bool
    changelogs: dict[Name, list[Topic]] | Absent = ABSENT
    changelogs_from: Name | Absent = ABSENT
    changelogs_known: bool | Absent = ABSENT


Line = ChangelogsLine | ConfigLine
