"""Tokens from a function: the operator's own, and the one for Amazon MSK."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from caughtup.agents.cli.options import Connection, settings_of
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config, rdkafka_config
from caughtup.agents.kafka.tokens.token import TokenError, provided_token
from caughtup.agents.settings import Settings

MSK = "caughtup.agents.kafka.tokens.msk"
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
PROVIDER = "sasl.oauthbearer.token.provider"

OPERATORS = """
import time
def good(config):
    return f"token-for-{config}", time.time() + 60
def milliseconds(config):
    return "hunter2", time.time() * 1000
def raising(config):
    raise RuntimeError("hunter2")
def nothing(config):
    return None
constant = "hunter2"
"""


@pytest.fixture(autouse=True)
def operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "operators.py").write_text(OPERATORS)
    (tmp_path / "broken.py").write_text("raise RuntimeError('hunter2')")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("operators", "broken", MSK, "aws_msk_iam_sasl_signer"):
        sys.modules.pop(name, None)


def given(**properties: str) -> Settings:
    kafka = {**LOGIN, **{name.replace("_", "."): value for name, value in properties.items()}}
    properties = tuple(f"{name}={value}" for name, value in kafka.items())
    return settings_of(Connection("127.0.0.1:1", properties=properties))


def test_the_function_is_called_with_its_config_for_every_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = given(
        **{PROVIDER: "operators:good", "sasl.oauthbearer.config": "me"},
        sasl_oauthbearer_extensions="logicalCluster=lkc-1,identityPoolId=pool-2",
    )
    called = rdkafka_config(settings)["oauth_cb"]
    value, expires_at, _, extensions = called("")
    assert value == "token-for-me"
    assert 50 < expires_at - time.time() <= 60
    assert extensions == {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    assert PROVIDER not in rdkafka_config(settings), "librdkafka has no such property"
    assert aiokafka_config(settings)["sasl_oauth_token_provider"].extensions() == extensions


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("operators", "it has to be MODULE:FUNCTION"),
        ("operators:none", "operators has no function none"),
        ("operators:constant", "operators has no function constant"),
        ("nowhere.at_all:f", "cannot import nowhere.at_all: No module named 'nowhere'"),
        ("broken:f", "cannot import broken: RuntimeError"),
    ],
)
def test_one_that_cannot_be_called_is_refused_before_anything_connects(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refused:
        given(**{PROVIDER: name})
    assert refused.value.message == f"setting kafka.{PROVIDER}: {words}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("operators:raising", "it raised RuntimeError"),
        ("operators:nothing", "it raised TypeError"),
        ("operators:milliseconds", "seconds since 1970 are expected"),
    ],
)
def test_one_that_returns_no_token_is_named_and_nothing_that_it_says(name: str, words: str) -> None:
    with pytest.raises(TokenError) as refused:
        provided_token(name, "")
    assert str(refused.value).startswith(f"no token from {name}: ")
    assert words in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_without_amazons_signer_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(UserError) as refused:
        given(**{PROVIDER: f"{MSK}:token"})
    assert "; type: pip install 'caughtup[msk]'" in refused.value.message
    assert "aws_msk_iam_sasl_signer" in refused.value.message


def test_amazons_signer_is_called_with_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in: there is no Amazon here."""
    regions = []

    class MSKAuthTokenProvider:
        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            regions.append(region)
            return "signed", int((time.time() + 900) * 1000)

    signer = ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = MSKAuthTokenProvider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", signer)
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(TokenError, match=f"no token from {MSK}:token: the region is not known"):
        provided_token(f"{MSK}:token", "")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    token = provided_token(f"{MSK}:token", "")
    assert (token.value, 890 < token.expires_at - time.time() <= 900) == ("signed", True)
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    provided_token(f"{MSK}:token", "")
    provided_token(f"{MSK}:token", "region=eu-central-1")
    assert regions == ["us-east-1", "us-west-2", "eu-central-1"]
