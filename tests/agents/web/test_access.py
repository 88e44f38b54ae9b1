"""The Host header and the token: what is refused, and the setting that the refusal names."""

from __future__ import annotations

import logging
import socket
from base64 import b64encode
from pathlib import Path

import pytest

from caughtup.agents.configuration import watched_files
from caughtup.agents.errors import UserError
from caughtup.agents.web.access import AllowedHosts
from caughtup.agents.web.addresses import host_name, is_loopback
from tests.support.observability.site import Site

ALL_PATHS = ("/", "/page.js", "/api/state", "/api/events", "/metrics", "/ready", "/nothing/here")


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_a_name_that_is_not_ours_is_refused_and_the_setting_is_named(path: str) -> None:
    async with Site() as site, site.get(path, headers={"Host": "evil.example"}) as answer:
        assert answer.status == 421
        text = await answer.text()
    assert "evil.example" in text
    assert "web_allowed_hosts" in text
    assert text.count("\n") == 1


async def test_a_refused_name_is_logged_once_and_many_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="caughtup")
    async with Site() as site:
        for number in range(30):
            for _ in range(2):
                host = {"Host": f"evil-{number}.example"}
                assert await site.status("/metrics", headers=host) == 421
    refused = [line for line in caplog.messages if "evil-" in line]
    assert len(refused) == len(set(refused)) == 10
    assert "web_allowed_hosts" in refused[0]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8080",
        "localhost",
        "LOCALHOST.:8080",
        "[::1]:8080",
        "10.1.2.3:80",
        "[fe80::1]",
        socket.gethostname(),
        "caughtup",
        "Metrics.Example.com:9100",
    ],
)
async def test_addresses_own_names_and_those_of_the_setting_are_answered(host: str) -> None:
    async with Site(web_allowed_hosts="caughtup, metrics.example.com") as site:
        assert await site.status("/ready", headers={"Host": host}) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8080",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "[::1].evil.example",
        "[evil.example]",
        "127.0.0.1:80:evil.example",
        "0x7f.1.evil",
        "",
    ],
)
def test_what_only_looks_like_ours_is_refused(host: str) -> None:
    assert not AllowedHosts("127.0.0.1", []).allows(host)


def test_the_name_that_is_listened_on_is_answered_and_with_a_star_every_name() -> None:
    assert AllowedHosts("monitor.example", []).allows("monitor.example:8080")
    assert AllowedHosts("127.0.0.1", ["*"]).allows("evil.example")


async def test_without_a_host_header_as_in_http_1_0_it_answers() -> None:
    async with Site() as site, site.connected() as connected:
        connected.writer.write(b"GET /ready HTTP/1.0\r\n\r\n")
        assert b"200 OK" in await connected.head()


def test_a_host_is_taken_apart() -> None:
    assert host_name("name:80") == "name"
    assert host_name("[::1]:80") == "::1"
    assert host_name("[::1") is None
    assert host_name("name:http") is None


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("monitor.example", False),
    ],
)
def test_what_only_this_machine_reaches_is_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [
        ({"web_host": "127.0.0.1"}, None),
        ({"web_host": "0.0.0.0"}, "web_tls_certificate and web_token_file"),
    ],
)
async def test_listening_on_a_network_without_tls_or_token_is_said(
    settings: dict[str, str], lacking: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="caughtup")
    async with Site(**settings):
        pass
    warned = [line for line in caplog.messages if "web_" in line]
    assert [lacking in line for line in warned] == ([True] if lacking else [])


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
