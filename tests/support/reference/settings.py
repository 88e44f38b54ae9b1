"""docs/reference/settings.md: every setting, with its description."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.configuration.text import toml_value
from caughtup.agents.declared_settings import Setting, settings_of
from caughtup.agents.settings import Settings
from tests.support.reference.markdown import code, escaped, table

_HEAD = """\
# Settings

Every setting, made of the settings' own descriptions by `make reference`. They are given as \
options of a command, as variables, or in a file, `caughtup.toml`, in this order of precedence: \
[where settings come from](../operating.md#where-do-settings-come-from). \
[caughtup.example.toml](../../caughtup.example.toml) is a file with all of them.
"""
_APPLICATIONS = """\
## Of an application

Below `[applications."NAME"]`, under Kafka's names. None is needed: what the settings do not say is \
read or [learned](../operating.md#where-do-settings-come-from).
"""
_COLUMNS = ("setting", "variable", "default", "what")


def settings_page() -> str:
    """Return the page."""
    rows = [*map(_row, settings_of(Settings).values())]
    lines = [_HEAD, *table(_COLUMNS, rows), "", _APPLICATIONS]
    return "\n".join([*lines, *table(("config", "example", "what"), _configs()), ""])


def _row(setting: Setting) -> tuple[str, ...]:
    variable = f"CAUGHTUP_{setting.name.upper()}"
    what = escaped(setting.declared.description)
    return f"`{setting.name}`", f"`{variable}`", _default(setting), what


def _default(setting: Setting) -> str:
    """Return a default as TOML; for a setting without one, an example."""
    examples = setting.declared.examples
    if setting.default not in (None, (), {}):
        return code(toml_value(setting.default))
    return f"not set (such as {code(toml_value(examples[0]))})" if examples else "not set"


def _configs() -> Iterator[tuple[str, ...]]:
    for setting in settings_of(ApplicationConfig).values():
        examples = setting.declared.examples
        example = toml_value(examples[0]) if examples else ""
        what = escaped(setting.declared.description or "As Kafka Streams has it.")
        yield f"`{setting.name}`", code(example), what
