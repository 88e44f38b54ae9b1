"""Write settings as TOML: the annotated example, and those in force with secrets hidden."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.configuration.loading import Loaded
from caughtup.agents.declared_settings import Setting, settings_of
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import is_secret

HIDDEN = "(hidden)"
_TABLES = ("kafka", "applications")
_WIDTH = 96
_HEAD = """\
caughtup.example.toml: every setting with its default, made by `make example` from the settings' own
descriptions. Copy it to caughtup.toml and take the # away from what you change.

Options win over variables, variables over this file: CAUGHTUP_ and the name in upper case
(CAUGHTUP_WEB_PORT), lists separated by commas; CAUGHTUP_KAFKA and CAUGHTUP_APPLICATIONS are JSON
and add to the tables here, as CAUGHTUP_KAFKA_SASL_PASSWORD and the like do. `caughtup check
--print-config` prints the resulting settings and where each is from.
"""
_KAFKA = """\
Every secret may be in a file, which is read again when it changes: put _file behind its name.
What one of the clients can't honour is refused by its name; docs/connecting.md has the table.
"""
_KAFKA_EXAMPLES: Mapping[str, str] = {
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": "/etc/ssl/kafka-ca.pem",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "caughtup",
    "sasl.password_file": "/etc/caughtup/kafka.password",
    "ssl.certificate.location": "/etc/caughtup/client.crt",
    "ssl.key.location": "/etc/caughtup/client.key",
    "ssl.key.password_file": "/etc/caughtup/client.key.password",
    "ssl.keystore.location": "/etc/caughtup/client.p12",
    "ssl.keystore.password_file": "/etc/caughtup/client.p12.password",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/oauth2/token",
    "sasl.oauthbearer.client.id": "caughtup",
    "sasl.oauthbearer.client.secret_file": "/etc/caughtup/client.secret",
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.token.provider": "caughtup.agents.kafka.tokens.msk:token",
    "sasl.oauthbearer.config": "region=eu-central-1",
    "sasl.kerberos.principal": "caughtup@EXAMPLE.COM",
    "sasl.kerberos.keytab": "/etc/caughtup/caughtup.keytab",
}


def example() -> str:
    """Return the annotated example: every setting with its default, commented out."""
    known = settings_of(Settings)
    lines = [*_comment(_HEAD.splitlines())]
    for name in _plain():
        lines += ["", *_described(known[name]), f"#{name} = {toml_value(_shown(known[name]))}"]
    lines += ["", *_described(known["kafka"]), *_comment(_KAFKA.splitlines())]
    lines += ["#[kafka]"]
    lines += [
        f"#{toml_value(name)} = {toml_value(value)}" for name, value in _KAFKA_EXAMPLES.items()
    ]
    lines += ["", *_described(known["applications"]), '#[applications."orders"]']
    configs = dict(settings_of(ApplicationConfig))
    changelogs = configs.pop("changelogs")
    lines += [f"#{toml_value(one.name)} = {toml_value(_shown(one))}" for one in configs.values()]
    lines += ["", *_described(changelogs), '#[applications."orders".changelogs]']
    lines += [f"#{number} = {toml_value(topics)}" for number, topics in _shown(changelogs).items()]
    return "\n".join(lines) + "\n"


def printed(loaded: Loaded) -> str:
    """Return the settings in force as TOML, with where each was given; secrets are hidden."""
    settings, origins = loaded
    lines = [_line(name, getattr(settings, name), origins.get(name)) for name in _plain()]
    kafka = {
        name: HIDDEN if is_secret(name) else value
        for name, value in settings.kafka.items()
        if name not in settings.secret_files
    }
    kafka |= {f"{name}_file": str(path) for name, path in settings.secret_files.items()}
    if kafka:
        lines += ["", "[kafka]"]
        lines += [
            _line(toml_value(name), kafka[name], origins.get(f"kafka.{name}"))
            for name in sorted(kafka)
        ]
    for name, application in settings.applications.items():
        given = application.given()
        changelogs = given.pop("changelogs", {})
        origin = origins.get(f"applications.{name}")
        lines += ["", f"[applications.{toml_value(name)}]  # {origin}"]
        lines += [f"{toml_value(key)} = {toml_value(value)}" for key, value in given.items()]
        if changelogs:
            lines += [f"[applications.{toml_value(name)}.changelogs]"]
            lines += [f"{number} = {toml_value(topics)}" for number, topics in changelogs.items()]
    return "\n".join(lines) + "\n"


def _plain() -> list[str]:
    """Return the names of settings that are no tables: first those of Settings itself, in order."""
    names = [name for name in settings_of(Settings) if name not in _TABLES]
    return sorted(names, key=lambda name: name not in Settings.__annotations__)


def _line(name: str, value: object, origin: str | None) -> str:
    if value is None:
        return f"#{name} is not set"
    return f"{name} = {toml_value(value)}  # {origin or 'default'}"


def _shown(setting: Setting) -> Any:
    """Return a setting's value in the example: its example value if it has one, or its default."""
    examples = setting.declared.examples
    return examples[0] if examples else setting.default


def _described(setting: Setting) -> Iterator[str]:
    yield from _comment(wrap(setting.declared.description, _WIDTH))


def _comment(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"# {line}".rstrip()


def toml_value(value: object) -> str:
    """Return a value as TOML, whose strings, numbers and lists are like JSON's."""
    if isinstance(value, Path):
        value = str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def main() -> None:
    """Write ``caughtup.example.toml``."""
    Path("caughtup.example.toml").write_text(example())


if __name__ == "__main__":
    main()
