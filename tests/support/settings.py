"""Settings as values of files and variables give them: validated."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.agents.configuration.validating import validated
from caughtup.agents.settings import Settings


def settings_from(values: Mapping[str, object]) -> Settings:
    """Return settings of these values, none of which may be wrong."""
    settings, wrong = validated(values, {}, {})
    assert wrong == []
    return settings
