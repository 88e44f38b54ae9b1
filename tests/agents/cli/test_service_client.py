"""Asking a service: a real web server on loopback, and whatever else may be at an address."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner

from caughtup.agents.cli.service_client import ServiceClient
from caughtup.agents.errors import UserError
from caughtup.agents.main import main
from caughtup.agents.process.health import Health
from caughtup.models.records.fields import json_values
from caughtup.models.shown.lag import lag_lines
from tests.support.groups.records import GROUP
from tests.support.lag_program import LONG_GROUP, state
from tests.support.observability.site import Site
from tests.support.reassignments.reassigning import reassigning
from tests.support.states import GAINING, HOSTILE, STOPPED, everything

Commands = Callable[..., Any]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(state(), Health(ready=True, reader_lag=0)) as running:
        yield running


async def run(*arguments: object) -> Any:
    """Run a command while the loop goes on answering it."""
    return await asyncio.to_thread(CliRunner().invoke, main, [str(one) for one in arguments])


async def refused(service: str, *more: object) -> str:
    """Return the one line that a command leaves which gets no answer."""
    ran = await run("lag", "--service", service, *more)
    assert (ran.exit_code, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("caughtup: ")
    return line.removeprefix("caughtup: ")


async def test_groups_have_what_the_service_knows_of_them(site: Site) -> None:
    ran = await run("lag", "--service", site.url(""))
    assert (ran.exit_code, ran.stderr) == (0, "")
    rows = [line.split() for line in ran.stdout.splitlines()]
    assert rows[2] == [STOPPED, "stopped", "4900", "2940", "2", "-", "-"]
    assert len(rows) == 1 + 5


async def test_of_a_named_group_each_partition_and_the_same_lines_as_json(site: Site) -> None:
    ran = await run("lag", "--service", site.url("/"), STOPPED, "--wide")
    assert ran.stdout.splitlines()[2].split()[:6] == [
        STOPPED,
        "clicks",
        "1",
        "1000",
        "5900",
        "4900",
    ]
    assert "usual" in ran.stdout
    ran = await run("lag", "--service", site.url("/"), "--format", "json", STOPPED, GAINING)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    said = [*lag_lines(site.state, GAINING), *lag_lines(site.state, STOPPED)]
    assert found == [json_values(line) for line in said]


async def test_json_of_all_is_what_the_state_has() -> None:
    async with Site(everything(), Health(ready=True, reader_lag=0)) as site:
        ran = await run("lag", "--service", site.url(""), "--format", "json")
        groups = dict.fromkeys(json.loads(line)["group"] for line in ran.stdout.split("\n")[:-1])
        assert list(groups) == [*site.state.group_names()]
        ran = await run("lag", "--service", site.url(""), "--format", "json", HOSTILE)
        assert [json.loads(line)["group"] for line in ran.stdout.split("\n")[:-1]] == [HOSTILE]
        ran = await run("lag", "--service", site.url(""), GROUP)
        assert "PROVENANCE" in ran.stdout


async def test_many_groups_are_asked_for_in_the_order_that_is_wanted(site: Site) -> None:
    client = ServiceClient(site.url(""))
    wanted = ["no-such-group" * 20, LONG_GROUP, *("x" * 3_000 + str(n) for n in range(4)), GAINING]
    found = await asyncio.to_thread(lambda: list(client.lag(wanted)))
    assert list(dict.fromkeys(line.group for line in found)) == [LONG_GROUP, GAINING]


async def test_what_a_service_does_not_know_yet_is_told_beside_what_it_knows(site: Site) -> None:
    site.health.ready, site.health.reader_lag = False, 77
    ran = await run("lag", "--service", site.url(""))
    assert len(ran.stdout.splitlines()) == 6
    assert f"incomplete at {site.url('')}: catching up: 77 records" in ran.stderr


async def test_reassignments_have_their_past_at_once() -> None:
    async with Site(reassigning()) as site:
        ran = await run("reassignments", "--service", site.url(""), "--format", "json")
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [(one["kind"], one.get("topic")) for one in found] == [
            ("partition", "dead"),
            ("partition", "new"),
            ("partition", "fine"),
            ("throttle", None),
            ("throttle", None),
        ]
        assert found[0]["verdict"] == "dead target"
        assert found[0]["age_seconds"] == 10
        ran = await run("reassignments", "--service", site.url(""))
        assert "dead-0: dead target (destination-broker-down)" in ran.stdout


async def test_where_nothing_moves_it_says_so_and_exits_with_3(site: Site) -> None:
    ran = await run("reassignments", "--service", site.url(""))
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr == "no partition is in movement, and no throttle is orphaned\n"


async def test_a_token_goes_from_a_file_and_its_lack_is_told(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_text("töken É")
    async with Site(state(), web_token_file=theirs) as site:
        assert "requires its token: give --token-file FILE" in await refused(site.url(""))
        ours.write_text("töken É\n")
        ran = await run("lag", "--service", site.url(""), "--token-file", ours)
        assert (ran.exit_code, ran.stderr) == (0, "")
        ours.write_text("another")
        assert "refuses the token in" in await refused(site.url(""), "--token-file", ours)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "the file has no token"), ("a\nb", "the file has no token"), (None, "No such file")],
)
async def test_a_token_file_without_one_is_told(
    site: Site, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    assert said in await refused(site.url(""), "--token-file", file)


async def test_tls_is_checked_and_who_signs_can_be_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    crt, key, ca, bad = (tmp_path / name for name in ("crt", "key", "ca", "bad"))
    crt.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    authority.cert_pem.write_to_path(ca)
    bad.write_text("no certificate")
    async with Site(state(), web_tls_certificate=crt, web_tls_key=key) as site:
        ran = await run("lag", "--service", site.url("", "https"), "--service-ca", ca)
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert "isn't trusted" in await refused(site.url("", "https"))
        assert "if it speaks TLS (web_tls_certificate), use https://" in await refused(site.url(""))
        assert "no certificates in PEM" in await refused(site.url("", "https"), "--service-ca", bad)
    async with Site(state()) as site:
        assert "does not speak TLS: try http://" in await refused(site.url("", "https"))


async def test_a_name_that_is_not_the_services_is_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = socket.getaddrinfo

    def resolved(host: str, *more: Any, **named: Any) -> Any:
        return known("127.0.0.1" if host == "kafka.example" else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    said = await refused(site.url("").replace("127.0.0.1", "kafka.example"))
    assert "add kafka.example to its web_allowed_hosts" in said
    assert "Traceback" not in said


async def test_nobody_there_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        said = await refused(f"http://127.0.0.1:{port}")
    assert (
        said
        == f"nothing listens at http://127.0.0.1:{port}: does the service run there (web_host, web_port)?"
    )
    assert "no such host" in await refused("http://no-such-host.invalid:8080")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Listen, answer one request with these bytes, and close."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "closes the connection: if it speaks TLS"),
        (b"", "closes the connection: if it speaks TLS"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhey!", "check the port"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "check the port"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "closes the connection"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n",
            "redirects, and caughtup follows no redirect",
        ),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "not a caughtup service, or an older release",
        ),
        (
            b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nbusy\n",
            "is busy: busy; try again",
        ),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\n\x1b[2J\n", "answers 500: [2J"),
    ],
    ids=lambda value: value[:24].decode() if isinstance(value, bytes) else "",
)
async def test_whatever_else_answers_is_told_in_a_line(answer: bytes, said: str) -> None:
    with answering(answer) as url:
        assert said in await refused(url)


async def test_a_client_that_the_service_does_not_know_is_no_older_service() -> None:
    body = b'{"error": "\'e\' is not among a, b"}'
    head = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with answering(head + body) as url:
        ran = await run("safe", "orders", "--stop", "e", "--service", url)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr == "caughtup: 'e' is not among a, b\n"


def test_causes_that_only_a_newer_service_knows_are_left_out() -> None:
    causes: list[dict[str, str]] = [
        {"kind": "solar_flare", "sure": "certain"},
        {"kind": "joined", "sure": "likely", "client": "c"},
    ]
    rebalances = [
        {"generation": number, "causes": some, "members": 1}
        for number, some in ((3, causes), (2, causes[:1]), (1, causes[1:]))
    ]
    answer = {"group": "g", "group_type": "classic", "generation": 3, "members": []}
    body = json.dumps({**answer, "rebalances": rebalances}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with answering(head + body) as url:
        found = ServiceClient(url).explanation("g")
    assert [(one.generation, one.cause_texts) for one in found.rebalances] == [
        (3, ["c joined (likely)"]),
        (1, ["c joined (likely)"]),
    ]


async def test_lines_that_break_off_are_not_taken_for_all_of_them() -> None:
    body = b'e\r\n{"kind": "a"}\n\r\n'
    with answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body) as url:
        client = ServiceClient(url)
        with pytest.raises(UserError, match="closes the connection"):
            await asyncio.to_thread(client.reassignments)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "ftp://h",
        "http://",
        "http://h:port",
        "http://h/?x=1",
        "http://a b/",
        "http://[::1",
    ],
)
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(UserError, match="is not an address; http://HOST:PORT is expected"):
        ServiceClient(url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError, match="name the token with --token-file") as refusal:
        ServiceClient("http://anybody:s3cret@127.0.0.1:8080")
    assert "s3cret" not in refusal.value.message


def test_a_token_without_tls_beyond_this_machine_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("t")
    ServiceClient("http://127.0.0.1:1", file)
    ServiceClient("https://caughtup.example:1", file)
    assert capsys.readouterr().err == ""
    ServiceClient("http://caughtup.example:1", file)
    assert "the token crosses the network unencrypted" in capsys.readouterr().err
