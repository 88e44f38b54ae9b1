"""An S3's settings: as variables, with secrets out of files, and shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.agents.configuration.loading import load_settings, read_settings
from caughtup.agents.configuration.s3_access import s3_variables, store_environment
from caughtup.agents.configuration.text import printed
from caughtup.agents.errors import UserError

SECRET = "wJalrXUtnFEMI"
KEYS = 's3_access_key = "AKIA"\ns3_secret_key_file = "secret"\n'


@pytest.fixture(autouse=True)
def in_a_directory_with_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_text(f"{SECRET}\n")


def test_what_is_set_is_what_an_s3s_clients_know() -> None:
    Path("token").write_text("for a while")
    Path("caughtup.toml").write_text(
        f'{KEYS}s3_endpoint = "http://store:9000"\ns3_region = "eu"\ns3_session_token_file = "token"'
    )
    assert s3_variables(load_settings()) == {
        "AWS_ENDPOINT_URL": "http://store:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": "for a while",
    }
    Path("caughtup.toml").write_text('s3_endpoint = "https://store"')
    assert s3_variables(load_settings()) == {"AWS_ENDPOINT_URL": "https://store"}


def test_settings_win_over_the_environment_for_an_s3_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("caughtup.toml").write_text(KEYS)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_REGION"):
        monkeypatch.setenv(name, "of the environment")
    found = store_environment("s3a://lake/history", None)
    assert found["AWS_ACCESS_KEY_ID"] == "AKIA"
    assert found["AWS_REGION"] == "of the environment"
    Path("caughtup.toml").write_text("settings that nobody can read")
    assert store_environment("/data/history", None)["AWS_REGION"] == "of the environment"


def test_a_secret_that_changes_is_read_again_and_one_that_is_gone_is_said() -> None:
    Path("caughtup.toml").write_text(KEYS)
    settings = load_settings()
    Path("secret").write_text("another")
    assert s3_variables(settings)["AWS_SECRET_ACCESS_KEY"] == "another"
    Path("secret").unlink()
    with pytest.raises(UserError, match="setting s3_secret_key_file: secret: No such file"):
        s3_variables(settings)


def test_the_secret_is_shown_nowhere() -> None:
    Path("caughtup.toml").write_text(KEYS)
    loaded = read_settings()
    s3_variables(loaded.settings)
    assert SECRET not in repr(loaded) + printed(loaded)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('s3_access_key = "AKIA"', "s3_access_key and s3_secret_key_file need each other"),
        ('s3_secret_key_file = "secret"', "s3_access_key and s3_secret_key_file need each other"),
        ('s3_session_token_file = "secret"', "s3_session_token_file needs s3_access_key"),
        ('s3_endpoint = "store:9000"', "http://HOST:PORT or https://HOST:PORT is expected"),
        (
            's3_endpoint = "https://me:pw@store"',
            "http://HOST:PORT or https://HOST:PORT is expected",
        ),
    ],
)
def test_what_does_not_hold_together_is_refused(text: str, said: str) -> None:
    Path("caughtup.toml").write_text(text)
    with pytest.raises(UserError) as failure:
        load_settings()
    assert said in failure.value.message
    assert "pw" not in failure.value.message
