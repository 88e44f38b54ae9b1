"""The token: who has it is answered, whoever hasn't is told how to send it."""

from __future__ import annotations

import logging
from base64 import b64encode
from pathlib import Path

import pytest

from caughtup.agents.configuration import watched_files
from caughtup.agents.errors import UserError
from tests.support.observability.site import Site

TOKEN = "s3cret-tökén: with a colon"
OPEN = ("/ready", "/healthz")
CLOSED = (
    "/",
    "/page.js",
    "/api/state",
    "/api/lag",
    "/api/reassignments",
    "/api/connect",
    "/api/configs",
    "/api/events",
    "/metrics",
    "/nothing/here",
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watched_files, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def rotate(path: Path, text: str | None) -> None:
    """Write other text into a file, or delete it."""
    if text is None:
        path.unlink()
    else:
        path.write_text(text)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(password: str, user: str = "anybody") -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize("path", CLOSED)
async def test_without_the_token_nothing_is_told_but_how_to_send_it(path: str, file: Path) -> None:
    async with Site(web_token_file=file) as site:
        async with site.get(path) as answer:
            assert answer.status == 401
            challenges = answer.headers.getall("WWW-Authenticate")
            assert "Content-Security-Policy" in answer.headers
        assert {challenge.split()[0] for challenge in challenges} == {"Basic", "Bearer"}
        assert await site.status(path, headers=bearer(TOKEN)) in (200, 404)


@pytest.mark.parametrize("path", OPEN)
async def test_probes_have_no_token_and_are_answered(path: str, file: Path) -> None:
    async with Site(web_token_file=file) as site:
        assert await site.status(path) == 200


async def test_prometheus_and_a_browser_send_it_each_in_its_own_way(file: Path) -> None:
    async with Site(web_token_file=file) as site:
        for headers in (bearer(TOKEN), basic(TOKEN), basic(TOKEN, user="")):
            assert await site.status("/metrics", headers=headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        bearer(""),
        bearer(TOKEN[:-1]),
        bearer(TOKEN + "x"),
        basic(""),
        basic("wrong"),
        {"Authorization": TOKEN},
        {"Authorization": "Basic not-base-64"},
        {"Authorization": "Basic " + b64encode(b"no colon").decode()},
        {"Authorization": f"Digest {TOKEN}"},
    ],
)
async def test_what_is_not_the_token_is_refused(headers: dict[str, str], file: Path) -> None:
    async with Site(web_token_file=file) as site:
        assert await site.status("/metrics", headers=headers) == 401


async def test_a_rotated_token_is_read_again_and_the_old_one_is_worth_nothing(file: Path) -> None:
    async with Site(web_token_file=file) as site:
        rotate(file, "another")
        assert await site.status("/metrics", headers=bearer("another")) == 200
        assert await site.status("/metrics", headers=bearer(TOKEN)) == 401


@pytest.mark.parametrize("broken", ["\n", None])
async def test_a_broken_new_token_is_said_and_the_old_one_stays(
    broken: str | None, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="caughtup")
    async with Site(web_token_file=file) as site:
        rotate(file, broken)
        for _ in range(2):
            assert await site.status("/metrics", headers=bearer(TOKEN)) == 200
            assert await site.status("/metrics", headers=bearer("")) == 401
    (said,) = [line for line in caplog.messages if "web_token_file" in line]
    assert str(file) in said
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_no_token_to_read_is_an_error_at_the_start(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError) as failure:
        Site(web_token_file=path)
    assert failure.value.message.startswith(f"setting web_token_file: {path}: ")


async def test_on_a_network_a_token_without_tls_is_warned_of(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="caughtup")
    async with Site(web_token_file=file, web_host="0.0.0.0"):
        pass
    (said,) = [line for line in caplog.messages if "web_" in line]
    assert "web_tls_certificate" in said
    assert "web_token_file" not in said
