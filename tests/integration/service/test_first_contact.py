"""Every way in which a cluster can't be connected to, staged: each has a line of its own, soon."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.first_contact import connect
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.broker_config import Security, Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from tests.support.kafka.listeners import before, closing, listening, silent, web_server
from tests.support.service import caughtup, settings_file

DOCUMENTED = Path(__file__).parents[3] / "docs/connecting.md"
PASSWORD = "of the user"
COMMANDS = (["lag"], ["explain", "g"], ["reassignments"], ["check"], ["run", "--web-port", "0"])
#: What takes longest to be known is silence, after 3 s; it is told 1 s later.
KNOWN_SECONDS, SILENCE_SECONDS = 3.0, 4.0
#: For Python to start, on a machine that is busy with other tests.
START_SECONDS = 30.0

Given = tuple[str, dict[str, str]]


class Place(NamedTuple):
    """A cluster with SASL_SSL and a plain listener beside it, and what is needed to connect."""

    cluster: EmbeddedCluster
    tls: Tls
    authority: trustme.CA
    open: Callable[..., str]

    @property
    def plain(self) -> str:
        return self.cluster.internal_bootstrap_servers

    @property
    def secured(self) -> str:
        return self.cluster.bootstrap_servers

    def login(self, protocol: str = "SASL_SSL", **changed: str) -> dict[str, str]:
        given = {
            "security.protocol": protocol,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.tls.authority),
        }
        return given | {name.replace("_", "."): value for name, value in changed.items()}

    def behind(self, **issued: object) -> Given:
        """Return how to connect through TLS with a certificate of ours."""
        name = str(issued.pop("name", "127.0.0.1"))
        certificate = self.authority.issue_cert(name, **issued)  # type: ignore[arg-type]
        relay = before(self.plain, certificate)
        authority = self.tls.authority.with_name("ours.pem")
        self.authority.cert_pem.write_to_path(authority)
        given = {"security.protocol": "SSL", "ssl.ca.location": str(authority)}
        return self.open(relay), given


@pytest.fixture(scope="module")
def place(tls: Tls) -> Iterator[Place]:
    security = Security("sasl_ssl", {"admin": PASSWORD}, tls=tls)
    with ExitStack() as stack:
        cluster = stack.enter_context(EmbeddedCluster(security=security))
        yield Place(cluster, tls, trustme.CA(), lambda serve: stack.enter_context(listening(serve)))


def client_certificate_wanted(place: Place) -> Given:
    _, given = place.behind()
    certificate = place.authority.issue_cert("127.0.0.1")
    return place.open(before(place.plain, certificate, place.authority)), given


def unknown_authority(place: Place) -> Given:
    path = place.tls.authority.with_name("another.pem")
    trustme.CA().cert_pem.write_to_path(path)
    return place.secured, place.login(ssl_ca_location=str(path))


PAST = datetime.now(UTC) - timedelta(days=1)
#: By name: how to connect to what is wrong.
STAGED: dict[str, Callable[[Place], Given]] = {
    "nothing listens": lambda _: (f"127.0.0.1:{free_ports(1)[0]}", {}),
    "no such host": lambda _: ("no.such.host.invalid:9092", {}),
    "plain text against TLS": lambda p: (p.secured, {}),
    "SASL in plain text against TLS": lambda p: (p.secured, p.login("SASL_PLAINTEXT")),
    "TLS against plain text": lambda p: (p.plain, p.login("SSL")),
    "SASL over TLS against plain text": lambda p: (p.plain, p.login()),
    "no login where one is wanted": lambda p: (
        p.secured,
        {"security.protocol": "SSL", "ssl.ca.location": str(p.tls.authority)},
    ),
    "a login where none is taken": lambda p: (p.plain, p.login("SASL_PLAINTEXT")),
    "a mechanism that is not offered": lambda p: (
        p.secured,
        p.login(sasl_mechanism="SCRAM-SHA-256"),
    ),
    "bad credentials": lambda p: (p.secured, p.login(sasl_password="another")),
    "unknown authority": unknown_authority,
    "expired certificate": lambda p: p.behind(not_before=PAST - timedelta(1), not_after=PAST),
    "certificate for another name": lambda p: p.behind(name="broker.example.com"),
    "client's certificate wanted": client_certificate_wanted,
    "a web server": lambda p: (p.open(web_server), {}),
    "closes without a word": lambda p: (p.open(closing), {}),
    "takes connections and hangs": lambda p: (p.open(silent), {}),
}


def test_what_is_sound_is_connected_to(place: Place) -> None:
    for servers, kafka in ((place.secured, place.login()), (place.plain, {})):
        assert connect(Settings(bootstrap_servers=servers, kafka=kafka)).cluster
    several = f"127.0.0.1:{free_ports(1)[0]},{place.plain}"
    assert connect(Settings(bootstrap_servers=several)).cluster


@pytest.mark.parametrize(("number", "name"), list(enumerate(STAGED)))
def test_each_has_its_own_line_soon_and_it_is_documented(
    place: Place, tmp_path: Path, number: int, name: str
) -> None:
    servers, kafka = STAGED[name](place)
    config = settings_file(tmp_path, servers, kafka)
    every = os.environ.get("TESTS_THOROUGH") == "1"
    commands = COMMANDS if every else [COMMANDS[number % len(COMMANDS)]]
    with ThreadPoolExecutor() as threads:
        run = [
            threads.submit(caughtup, *command, "--config", config, directory=tmp_path)
            for command in commands
        ]
    for ran in (future.result() for future in run):
        *warnings, line = ran.err.splitlines()
        assert all(warning.startswith("caughtup: warning: ") for warning in warnings)
        assert ran.code == 1
        said = line.removeprefix("caughtup: ").removeprefix("connect: ")
        told = re.sub(r"\S+\.pem", "FILE", said.replace(servers, "HOST:PORT"))
        print(f"| {name} | {told} | {ran.seconds:.1f} |")
        assert f"| {told} |" in DOCUMENTED.read_text()
        limit = SILENCE_SECONDS if "hangs" in name else KNOWN_SECONDS
        assert ran.seconds < limit + START_SECONDS
        assert PASSWORD not in ran.out + ran.err


def test_a_broker_that_hangs_is_told_and_one_that_goes_on_is_met(place: Place) -> None:
    """A real one, stopped as a machine that is suspended stops it; it goes on while we wait."""
    (pid,) = place.cluster.pids
    given = Settings(bootstrap_servers=place.plain)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(UserError, match="accepts connections but does not answer"):
            connect(given)
        with ThreadPoolExecutor(1) as threads:
            met = threads.submit(connect, given)
            with pytest.raises(TimeoutError):
                met.result(2.5)
            os.kill(pid, signal.SIGCONT)
            assert met.result(30).cluster
    finally:
        os.kill(pid, signal.SIGCONT)
