"""docs/reference/settings.md: every setting, with its description."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.fields import FieldInfo

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.configuration.text import toml_value
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
    rows = [_row(name, field) for name, field in Settings.model_fields.items()]
    lines = [_HEAD, *table(_COLUMNS, rows), "", _APPLICATIONS]
    return "\n".join([*lines, *table(("config", "example", "what"), _configs()), ""])


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    variable = f"CAUGHTUP_{name.upper()}"
    return f"`{name}`", f"`{variable}`", _default(field), escaped(field.description or "")


def _default(field: FieldInfo) -> str:
    """Return a default as TOML; for a setting without one, an example."""
    if field.default not in (None, (), {}):
        return code(toml_value(field.default))
    return (
        f"not set (such as {code(toml_value(field.examples[0]))})" if field.examples else "not set"
    )


def _configs() -> Iterator[tuple[str, ...]]:
    for name, field in ApplicationConfig.model_fields.items():
        example = toml_value(field.examples[0]) if field.examples else ""
        what = escaped(field.description or "As Kafka Streams has it.")
        yield f"`{field.alias or name}`", code(example), what
