"""An event loop that is really blocked: whoever asks is told so, by whichever path, over TLS too."""

from __future__ import annotations

import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from caughtup.agents.process.health import EVENT_LOOP, OFFSETS, Health
from tests.support.observability.site import Site

SECONDS = 20


@contextmanager
def ticking(health: Health) -> Iterator[None]:
    """Tick as the supervisor does, a thousand times as fast, as long as the loop is blocked."""
    stopped = threading.Event()

    def tick() -> None:
        while not stopped.wait(0.000_25):
            health.pulses.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def ask(url: str, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Ask on this very thread: the event loop that runs on it gets no turn meanwhile."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("path", ["/healthz", "/ready", "/metrics"])
async def test_a_blocked_event_loop_is_told_of_by_a_thread(path: str) -> None:
    health = Health(ready=True)
    async with Site(health=health) as site:
        health.pulses.beat(EVENT_LOOP)
        with ticking(health):
            status, text = ask(site.url(path))
        assert status == 503
        assert text.startswith("the event loop has stood still for ")
        health.pulses.beat(EVENT_LOOP)
        health.pulses.tick()
        assert await site.status("/healthz") == 200


async def test_with_tls_it_answers_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    file = tmp_path / "tls.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(file)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    health = Health(ready=True)
    async with Site(health=health, web_tls_certificate=file) as site:
        health.pulses.beat(EVENT_LOOP)
        with ticking(health):
            status, text = ask(site.url("/healthz", "https"), context)
    assert (status, "stood still" in text) == (503, True)


async def test_who_sends_nothing_does_not_keep_others_from_an_answer() -> None:
    health = Health(ready=True)
    async with Site(health=health) as site, site.connected(), site.connected():
        health.pulses.beat(EVENT_LOOP)
        with ticking(health):
            assert ask(site.url("/healthz"))[0] == 503


async def test_health_says_how_long_ago_each_part_had_its_turn_and_fails_when_the_reader_hangs() -> (
    None
):
    health = Health(ready=True)
    async with Site(health=health) as site:
        for part in (EVENT_LOOP, OFFSETS):
            health.pulses.beat(part)
        for _ in range(240):  # a minute less a tick, as the first one finds a new part
            health.pulses.tick()
            health.pulses.beat(EVENT_LOOP)
        async with site.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (
                200,
                (
                    "ok\nevent loop: last turn 0.00 s ago\n"
                    "reader of __consumer_offsets: last turn 59.75 s ago\n"
                ),
            )
        health.pulses.tick()
        async with site.get("/healthz") as answer:
            assert answer.status == 503
            text = await answer.text()
        assert text.startswith("the reader of __consumer_offsets has stood still for 60 s\n")
        assert await site.status("/ready") == 200
