"""The Host header: a name that somebody else points here is refused, and says what to set."""

from __future__ import annotations

import logging
import socket

import pytest

from caughtup.agents.web.hosts import AllowedHosts, host_name, is_loopback
from tests.support.observability.site import Site

PATHS = ("/", "/page.js", "/api/state", "/api/events", "/metrics", "/ready", "/nothing/here")


@pytest.mark.parametrize("path", PATHS)
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
