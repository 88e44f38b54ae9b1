"""Secrets in files that change, vanish or break while the service runs."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from caughtup.agents.configuration import secret_files, watched_files
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.configuration.secret_files import SecretFiles
from caughtup.agents.kafka import clients
from caughtup.agents.kafka.config import aiokafka_config, rdkafka_config
from caughtup.agents.settings import Settings
from tests.support.service import wait_for

NAMES = ("first-hunter2", "second-hunter2")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "password"
    made.write_text(f"{NAMES[0]}\n")
    return made


@pytest.fixture
def settings(path: Path) -> Settings:
    return load_settings(
        bootstrap_servers="127.0.0.1:1",
        kafka={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "us",
            "sasl.password_file": str(path),
        },
    )


def test_a_password_that_changes_is_used_by_every_client_from_then_on(
    settings: Settings, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    made = clients.consumer(settings, **{"group.id": "g"}), clients.producer(settings)
    admin = clients.admin_client(settings)
    closed = clients.consumer(settings, **{"group.id": "g"})
    closed.close()
    for kind in map(type, (*made, admin)):
        monkeypatch.setattr(
            kind,
            "set_sasl_credentials",
            lambda _, *given: told.append(given),  # type: ignore[misc]
            raising=False,
        )
    held = aiokafka_config(settings)
    assert held["sasl_plain_password"] == NAMES[0]
    files = SecretFiles(settings)
    files.read_again()
    assert told == [], "nothing has changed"
    path.write_text(NAMES[1])
    files.read_again()
    assert set(told) == {("us", NAMES[1])}
    assert len(told) >= 3
    assert held["sasl_plain_password"] == NAMES[1]
    assert dict(held)["sasl_plain_password"] == NAMES[1]
    assert rdkafka_config(settings)["sasl.password"] == NAMES[1]


def test_a_client_that_is_gone_is_forgotten(settings: Settings) -> None:
    gc.collect()
    before = clients.set_credentials("us", "x")
    made = clients.producer(settings)
    assert clients.set_credentials("us", "x") == before + 1
    del made
    gc.collect()
    assert clients.set_credentials("us", "x") == before


@pytest.mark.parametrize("what", ["missing", "empty", "a directory", "not text", "too large"])
def test_while_a_file_cannot_be_read_the_secret_before_stays(
    what: str, settings: Settings, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = SecretFiles(settings)
    path.unlink()
    if what == "a directory":
        path.mkdir()
    elif what != "missing":
        path.write_bytes({"empty": b"\n", "not text": b"\xff", "too large": b"x" * 2**21}[what])
    for _ in range(3):
        files.read_again()
    assert settings.kafka["sasl.password"] == NAMES[0]
    (said,) = caplog.messages
    assert said.startswith(f"sasl.password_file: {path}: ")
    assert said.endswith("; the former content stays in use")
    if path.is_dir():
        path.rmdir()
    path.write_text(NAMES[1])
    files.read_again()
    assert settings.kafka["sasl.password"] == NAMES[1]
    assert not any(name in caplog.text for name in NAMES)


def test_what_opens_a_key_is_said_to_take_effect_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pass").write_text(NAMES[0])
    settings = load_settings(kafka={"ssl.key.password_file": "pass"})
    Path("pass").write_text(NAMES[1])
    SecretFiles(settings).read_again()
    assert caplog.messages == [
        "ssl.key.password_file has changed; the change takes effect at the next start"
    ]


def test_keys_and_certificates_that_change_are_said_to_take_effect_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_files, "_LOOK_SECONDS", 0.0)
    certificate = tmp_path / "client.crt"
    certificate.write_text("first")
    kafka = {"ssl.certificate.location": str(certificate), "ssl.ca.location": "probe"}
    files = SecretFiles(Settings(kafka=kafka))
    files.look_at_certificates()
    assert caplog.messages == []
    certificate.write_text("the second")
    files.look_at_certificates()
    files.look_at_certificates()
    (said,) = caplog.messages
    assert said.startswith(
        "ssl.certificate.location: the file has changed; the change takes effect at"
    )


async def test_the_service_looks_by_itself(
    settings: Settings, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_files, "_LOOK_SECONDS", 0.05)
    async with SecretFiles(settings):
        path.with_name("new").write_text(NAMES[1])
        path.with_name("new").rename(path)  # as Kubernetes switches what it mounts

        def seen() -> bool:
            return settings.kafka["sasl.password"] == NAMES[1]

        await asyncio.to_thread(wait_for, "it has the new one", seen)
    async with SecretFiles(Settings()):
        pass
