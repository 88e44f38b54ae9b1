"""Every login but Kerberos, to a broker that checks it: each client of the service, encrypted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from aiokafka.errors import SaslAuthenticationFailed

from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.broker_config import Tls
from tests.support.kafka.acls import allow
from tests.support.kafka.logins import (
    CERTIFICATES,
    MECHANISMS,
    PASSWORD,
    USER,
    Guarded,
    LoggedIn,
    Login,
)
from tests.support.kafka.secured import FEWEST
from tests.support.kafka.tokens import TokenEndpoint, away
from tests.support.kafka.topics import words_read
from tests.support.service import Ran, Service, caughtup, commit, settings_file, wait_for

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
DOCUMENTED = ROOT / "docs/connecting.md"
SECRET = "sasl.oauthbearer.client.secret"
COMMANDS = (["lag"], ["check"], ["run", "--web-port", "0"])
JSON = ("--format", "json")
PROVIDER = """
from caughtup.agents.kafka.tokens.endpoint import fetch_token
from caughtup.models.security.logins import ClientCredentials
def token(config):
    found = fetch_token(ClientCredentials(config, {user!r}, {password!r}, ""), {{}})
    return found.value, found.expires_at
"""


@pytest.fixture(scope="module")
def tokens() -> Iterator[TokenEndpoint]:
    with TokenEndpoint({}) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def guarded(tls: Tls, tokens: TokenEndpoint) -> Iterator[Guarded]:
    """A login is over after seconds: whoever stays has to log in anew."""
    with Guarded(tls, tokens, {"connections.max.reauth.ms": "5000"}) as cluster:
        allow(cluster.admin(), USER, *FEWEST)
        words_read(cluster, 10, 4)
        yield cluster


def run(login: Login, directory: Path, *command: str, **environment: str) -> Ran:
    path = settings_file(directory, login.bootstrap_servers, login.kafka)
    ran = caughtup(*command, "--config", path, directory=directory, environment=environment)
    assert PASSWORD not in ran.out + ran.err
    return ran


def service(cluster: Guarded, login: Login) -> Service:
    return Service(LoggedIn(cluster, login))  # type: ignore[arg-type]


def provided(guarded: Guarded, tokens: TokenEndpoint, directory: Path) -> Login:
    """Return a login by tokens that a function returns, of a module in the directory."""
    (directory / "ours.py").write_text(PROVIDER.format(user=USER, password=PASSWORD))
    kafka = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(guarded.tls.authority),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": "ours:token",
        "sasl.oauthbearer.config": tokens.url,
    }
    return Login(guarded.bootstrap_servers, kafka)


def test_commands_log_in_each_way_and_all_is_encrypted(
    guarded: Guarded, tokens: TokenEndpoint, tmp_path: Path
) -> None:
    ways = {way: guarded.login(way, USER, tmp_path) for way in (*MECHANISMS, *CERTIFICATES)}
    tokens.clients[USER] = PASSWORD
    ways["a function"] = provided(guarded, tokens, tmp_path)
    path = f"{ROOT}:{tmp_path}"
    commands = [(way, "check") for way in ways] + [("a function", "lag"), ("PKCS #12", "lag")]
    with ThreadPoolExecutor() as threads:
        running = [
            threads.submit(run, ways[way], tmp_path, command, *JSON, PYTHONPATH=path)
            for way, command in commands
        ]
        for (way, command), future in zip(commands, running, strict=True):
            ran = future.result()
            assert (ran.code, ran.err) == (0, ""), way
            if command == "check":
                assert all(finding["ok"] for finding in ran.lines), way
            else:
                assert [line["group"] for line in ran.lines] == ["readers"], way
    # Of each command a connection of librdkafka's and one of ours, at least.
    assert len(guarded.hellos["sasl"]) >= 2 * (len(MECHANISMS) + 1)
    assert len(guarded.hellos["certificate"]) >= 2 * len(CERTIFICATES)
    assert guarded.unencrypted() == []


@pytest.mark.thorough
def test_the_service_works_when_every_client_of_its_own_logs_in_so(
    guarded: Guarded, tmp_path: Path
) -> None:
    """A login is over after 5 s: who stays logs in anew, and no probe notices."""
    commit(guarded, "readers", "words", 4)
    with ExitStack() as stack:
        running = [
            stack.enter_context(service(guarded, guarded.login(way, USER, tmp_path)))
            for way in ("OAUTHBEARER", "PKCS #12")
        ]
        for each in running:
            each.wait_value(6, "group_lag_records", group="readers")
        commit(guarded, "readers", "words", 9)
        over = time.monotonic() + 11
        while time.monotonic() < over:
            assert all(each.ready() for each in running)
            time.sleep(0.2)
        for each in running:
            each.wait_value(1, "group_lag_records", group="readers")
            assert each.value("snapshot_age_seconds", source="reassignments") is not None
            for probe in ("end_offsets", "reassignments", "publish", "group", "lag"):
                assert not each.value("probe_errors_total", probe=probe), each.log
            assert PASSWORD not in each.log + each.metrics_text() + str(each.page())
    assert guarded.unencrypted() == []


def test_every_command_says_why_there_is_no_token(
    guarded: Guarded, tokens: TokenEndpoint, tmp_path: Path
) -> None:
    right = guarded.login("OAUTHBEARER", USER, tmp_path)
    wrong = Login(right.bootstrap_servers, {**right.kafka, SECRET: f"{PASSWORD}, but wrong"})
    with ThreadPoolExecutor() as threads:
        for ran in threads.map(lambda command: run(wrong, tmp_path, *command), COMMANDS):
            told = ran.message.removeprefix("connect: ").replace(tokens.url, "URL")
            assert f"| {told} |" in DOCUMENTED.read_text()
            assert "it answers 401 (invalid_client)" in told


async def test_a_token_that_brokers_do_not_take_is_a_refusal(
    guarded: Guarded, tmp_path: Path
) -> None:
    login = guarded.login("OAUTHBEARER", USER, tmp_path)
    with TokenEndpoint({USER: PASSWORD}) as another:  # of which the broker knows no key
        forged = Login(login.bootstrap_servers, {**login.kafka, **another.properties(USER)})
        ran = run(forged, tmp_path, "lag")
        config = aiokafka_config(
            Settings(bootstrap_servers=forged.bootstrap_servers, kafka=dict(forged.kafka))
        )
        with pytest.raises(SaslAuthenticationFailed, match="the broker refuses the token"):
            async with ClusterProtocol(config) as protocol:
                await protocol.brokers()
    assert ran.message.endswith("refused the credentials: check sasl.* under [kafka]")


def test_an_endpoint_that_comes_up_later_is_waited_for(
    guarded: Guarded, tokens: TokenEndpoint, tmp_path: Path
) -> None:
    """A command waits for a moment, the service for as long as it takes."""
    login = guarded.login("OAUTHBEARER", USER, tmp_path)
    started = service(guarded, login)
    try:
        with away(tokens):
            started.begin()
            wait_for("it says so", lambda: f"no token from {tokens.url}" in started.log)
            timer = threading.Timer(2.0, tokens.start)
            timer.start()
            assert run(login, tmp_path, "check").code == 0
            timer.join()
        wait_for("it is ready", lambda: ready(started))
    finally:
        started.process.terminate(10)


def ready(started: Service) -> bool:
    try:
        return started.ready()
    except URLError:
        return False


@pytest.mark.thorough
def test_while_an_endpoint_is_down_nothing_is_lost_and_it_is_said(tls: Tls, tmp_path: Path) -> None:
    """Tokens are good for 12 s, and the endpoint is away for 20: logins from before end, too."""
    with (
        TokenEndpoint({}, 12.0) as tokens,
        Guarded(tls, tokens, {"connections.max.reauth.ms": "3600000"}) as cluster,
    ):
        allow(cluster.admin(), USER, *FEWEST)
        words_read(cluster, 10, 4)
        with service(cluster, cluster.login("OAUTHBEARER", USER, tmp_path)) as running:
            running.wait_value(6, "group_lag_records", group="readers")
            with away(tokens):
                wait_for("it says so", lambda: _login_notices(running))
                commit(cluster, "readers", "words", 7)
                time.sleep(20)
                assert f"no token from {tokens.url}" in running.log
                commit(cluster, "readers", "words", 9)
                assert running.process.exit_code is None
            running.wait_value(1, "group_lag_records", group="readers")
            wait_for("it is all right", lambda: running.ready() and not _login_notices(running))
            assert "the token source works again" in running.log


def _login_notices(running: Service) -> list[Any]:
    return [said for said in running.page()["notices"] if said.startswith("login: ")]
