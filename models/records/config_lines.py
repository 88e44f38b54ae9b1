"""The lines about an application's configs in ``/api/configs`` and ``--format json``."""

from __future__ import annotations

from caughtup.models.records.fields import ABSENT, Absent, AnyGroup, Name, Part, Topic, extended
from caughtup.models.records.recommendations import KnownConfigRecord


class ConfigLine(KnownConfigRecord, kw_only=True):
    """A config of an application; ``known``: how it is known, in words. The page omits ``group``."""

    known: str
    group: AnyGroup | Absent = ABSENT

    @classmethod
    def of(cls, config: KnownConfigRecord, group: str) -> ConfigLine:
        """Return the line of a config."""
        return extended(cls, config, known=config.source, group=group)


class ChangelogsLine(Part):
    """An application's changelogs by subtopology.

    ``from_one_generation``: the configs are only known from the newest generation.
    ``changelogs_from``: the source of the changelogs, in words; ``changelogs_known``: whether a
    decision confirmed them. Both are absent without changelogs.
    """

    group: AnyGroup
    from_one_generation: bool
    changelogs: dict[Name, list[Topic]] | Absent = ABSENT
    changelogs_from: Name | Absent = ABSENT
    changelogs_known: bool | Absent = ABSENT


Line = ChangelogsLine | ConfigLine
