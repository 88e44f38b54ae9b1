"""Before the service starts: whether it can listen where it is told to."""

from __future__ import annotations

import socket
import sys

import pytest
from click.testing import CliRunner

from caughtup.agents.cli import run
from caughtup.agents.cli.run import require_free_port, require_otlp
from caughtup.agents.errors import UserError
from caughtup.agents.main import main
from caughtup.agents.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"])
def test_a_free_port_is_fine_on_either_protocol(host: str) -> None:
    require_free_port(Settings(web_host=host, web_port=0))


@pytest.mark.parametrize(
    ("family", "host", "place"),
    [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]")],
)
def test_a_port_that_is_taken_is_named(family: int, host: str, place: str) -> None:
    with socket.socket(family) as taken:
        taken.bind((host, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError) as raised:
            require_free_port(Settings(web_host=host, web_port=port))
    assert raised.value.message.startswith(f"cannot listen on {place}:{port} (Address already")


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "no.such.host.invalid"])
def test_a_place_that_is_not_this_machine_s_is_named(host: str) -> None:
    with pytest.raises(UserError, match="cannot listen on "):
        require_free_port(Settings(web_host=host))


def test_a_name_with_an_address_that_cannot_be_used_is_fine_with_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As localhost is on a machine without IPv6."""
    made = socket.socket

    def without_ipv6(family: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return made(family)

    addresses = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
    ]
    monkeypatch.setattr(socket, "socket", without_ipv6)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    require_free_port(Settings(web_host="localhost"))
    addresses.pop()
    with pytest.raises(UserError, match="cannot listen on localhost:8080"):
        require_free_port(Settings(web_host="localhost"))


def test_a_port_that_is_none_is_told_in_the_settings_own_words() -> None:
    ran = CliRunner().invoke(main, ["run", "--web-port", "http"])
    assert ran.exit_code == 1
    assert ran.stderr == "caughtup: setting web_port: it has to be a whole number (--web-port)\n"


@pytest.mark.parametrize(
    ("given", "exporters"),
    [
        ([], ()),
        (["--compat-metrics"], ("kafka_exporter",)),
        (["--compat-metrics", "--log-level", "info"], ("kafka_exporter",)),
        (["--compat-metrics", "kminion, burrow_exporter"], ("kminion", "burrow_exporter")),
    ],
)
def test_other_exporters_are_named_and_without_a_name_it_is_kafka_exporter(
    given: list[str], exporters: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    def stops(settings: Settings) -> None:
        seen.append(settings)
        raise UserError("seen")

    monkeypatch.setattr(run, "set_up_logging", lambda *_: None)
    monkeypatch.setattr(run, "require_free_port", stops)
    CliRunner().invoke(main, ["run", *given])
    assert [settings.compat_metrics for settings in seen] == [exporters]


def test_an_exporter_that_nobody_knows_is_told_with_those_that_there_are() -> None:
    refused = CliRunner().invoke(main, ["run", "--compat-metrics", "jmx"])
    assert refused.exit_code == 1
    for name in ("kafka_exporter", "kminion", "burrow_exporter", "kafka_lag_exporter"):
        assert name in refused.output


def test_without_the_extra_an_otlp_endpoint_is_refused_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "caughtup.agents.otlp.exporter", None)
    with pytest.raises(UserError, match=r"pip install 'caughtup\[otlp\]'"):
        require_otlp()
