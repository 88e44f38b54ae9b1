"""The annotated example is what the settings say of themselves, and what is printed hides secrets."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.configuration.loading import read_settings
from caughtup.agents.configuration.text import example, printed
from caughtup.agents.declared_settings import settings_of
from caughtup.agents.main import main
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import JAVA, LIBRDKAFKA, SECRETS

ROOT = Path(__file__).parents[3]
SECRET = "hunter2-correct-horse"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("CAUGHTUP_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_the_example_is_made_of_the_settings() -> None:
    assert (ROOT / "caughtup.example.toml").read_text() == example(), "run make example"


def test_every_setting_is_in_the_example_and_described() -> None:
    for name, one in settings_of(Settings).items():
        assert re.search(rf"^#{name} = |^#\[{name}\b", example(), re.MULTILINE), name
        assert one.declared.description, name
        assert one.declared.description.endswith((".", "; *: any.")), name


def test_the_example_does_nothing_and_without_its_marks_it_is_settings() -> None:
    assert tomllib.loads(example()) == {}
    text = re.sub(r"^#(?! |$)", "", example(), flags=re.MULTILINE)
    for path in set(re.findall(r'_file" = "([^"]+)"', text)):
        text = text.replace(path, "secret")
    text = text.replace("own_topics = true", "own_topics = false")  # as state_file needs
    Path("secret").write_text(SECRET)
    Path("caughtup.toml").write_text(text)
    loaded = read_settings()
    settings, given = loaded.settings, {name.partition(".")[0] for name in loaded.origins}
    assert given == settings_of(Settings).keys()
    assert settings.kafka["sasl.password"] == SECRET
    (application,) = settings.applications.values()
    configs = settings_of(ApplicationConfig).values()
    assert application.given().keys() == {one.name for one in configs}
    for name, one in settings_of(Settings).items():
        if not one.declared.examples and name not in ("kafka", "applications", "own_topics"):
            assert getattr(settings, name) == one.default


def test_the_documentation_lists_every_setting_and_its_default() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text()
    for name in settings_of(Settings):
        assert f"| `{name}` | `CAUGHTUP_{name.upper()}` |" in text


@pytest.mark.parametrize("name", sorted(SECRETS & (LIBRDKAFKA | JAVA)))
def test_no_secret_is_printed(name: str) -> None:
    Path("secret").write_text(SECRET)
    for given in ({name: SECRET}, {f"{name}_file": "secret"}):
        text = printed(read_settings(kafka=given))
        assert SECRET not in text
        tomllib.loads(text)


def test_what_is_in_force_is_printed_with_where_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("secret").write_text(SECRET)
    Path("caughtup.toml").write_text(
        'cluster_name = "a \\"b\\" é"\n[kafka]\nsecurity.protocol = "SASL_SSL"\n'
        'sasl.mechanism = "PLAIN"\nsasl.username = "us"\n[applications.a]\nmax.warmup.replicas = 3'
    )
    monkeypatch.setenv("CAUGHTUP_WEB_PORT", "81")
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD_FILE", "secret")
    ran = CliRunner().invoke(main, ["check", "--print-config", "-b", "broker:1"])
    assert ran.exit_code == 0
    assert SECRET not in ran.output
    lines = ran.output.splitlines()
    for line in (
        'bootstrap_servers = "broker:1"  # --bootstrap-servers',
        'cluster_name = "a \\"b\\" é"  # caughtup.toml',
        "web_port = 81  # CAUGHTUP_WEB_PORT",
        'log_level = "info"  # default',
        "#web_tls_key is not set",
        '"sasl.password_file" = "secret"  # CAUGHTUP_KAFKA_SASL_PASSWORD_FILE',
        '"security.protocol" = "SASL_SSL"  # caughtup.toml',
        '[applications."a"]  # caughtup.toml',
    ):
        assert line in lines
    ran_as_json = CliRunner().invoke(main, ["check", "--print-config", "--format", "json"])
    assert (ran_as_json.exit_code, ran_as_json.stdout) == (2, "")
    again = tomllib.loads(ran.output)
    assert again["applications"] == {"a": {"max.warmup.replicas": 3}}
