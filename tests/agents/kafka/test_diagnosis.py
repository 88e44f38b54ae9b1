"""What is said of an address that no client can use, whatever answers there."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

import pytest

from caughtup.agents.kafka import diagnosis
from caughtup.agents.kafka.diagnosis import Trouble, diagnose, trouble_at
from caughtup.agents.settings import Settings
from caughtup.demo.processes.children import free_ports
from tests.support.kafka.listeners import closing, listening, silent, web_server

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "STEP_SECONDS", 0.3)


def answering(*bodies: bytes) -> Callable[[socket.socket], None]:
    """Return a server that answers one request after the other."""

    def serve(connection: socket.socket) -> None:
        for body in bodies:
            (length,) = struct.unpack(">i", connection.recv(4))
            connection.recv(length)
            connection.sendall(struct.pack(">ii", len(body) + 4, 1) + body)
        connection.recv(1)

    return serve


def handshake(code: int, *mechanisms: str) -> bytes:
    listed = b"".join(struct.pack(">h", len(m.encode())) + m.encode() for m in mechanisms)
    return struct.pack(">hi", code, len(mechanisms)) + listed


def at(address: str, kafka: dict[str, str] | None = None) -> Trouble | None:
    host, _, port = address.rpartition(":")
    return trouble_at(host, int(port), kafka or {})


def test_one_server_that_is_sound_is_enough() -> None:
    refused = f"127.0.0.1:{free_ports(1)[0]}"
    with (
        listening(answering(b"\0\0", handshake(34))) as sound,
        listening(silent) as hanging,
    ):
        assert diagnose(Settings(bootstrap_servers=f"{refused},{hanging},{sound}")) is None
        both = diagnose(Settings(bootstrap_servers=f"{refused},{hanging}"))
    assert both is not None
    one, other = sorted(both.line.split("; cannot"))
    assert "nothing listens" in one + other
    assert "does not answer within" in one + other
    assert both.passes_within == 4.0


@pytest.mark.parametrize(
    ("code", "kafka", "words"),
    [
        (34, {}, None),
        (0, SASL, None),
        (33, {}, "requires a login (it offers PLAIN, SCRAM-SHA-512)"),
        (33, SASL, "does not accept sasl.mechanism PLAIN: set one that it offers: PLAIN, SCRAM"),
        (34, SASL, "does not use SASL"),
    ],
)
def test_a_listener_says_itself_what_logins_it_takes(
    code: int, kafka: dict[str, str], words: str | None
) -> None:
    hostile = ("\x1b[31mPLAIN", "two\nlines", "x" * 30_000)
    with listening(answering(b"", handshake(code, "PLAIN", *hostile, "SCRAM-SHA-512"))) as address:
        trouble = at(address, kafka)
    if words is None:
        assert trouble is None
    else:
        assert trouble is not None
        assert words in trouble.line
        assert trouble.line.isprintable()
        assert len(trouble.line) < 300


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_whatever_answers_there_is_a_line_and_no_failure(protocol: str) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    kafka = {"security.protocol": protocol, "sasl.mechanism": "PLAIN"}

    def garbage(connection: socket.socket) -> None:
        connection.recv(1)
        length = source.choice((source.randrange(64), 0, -1, 1 << 30))
        start = source.choice((b"", struct.pack(">i", length), b"\x15\x03\x03\0\2\2\x28"))
        connection.sendall(start + source.randbytes(source.randrange(200)))
        connection.close()

    for serve in (web_server, closing, silent, *[garbage] * 8):
        with listening(serve) as address:
            trouble = at(address, kafka)
        assert trouble is not None
        assert trouble.line.isprintable()


def test_a_name_and_an_address_of_nobody_are_told() -> None:
    trouble = at("no.such.host.invalid:9092")
    assert trouble is not None
    assert "cannot reach Kafka at no.such.host.invalid:9092: " in trouble.line
    trouble = trouble_at("::1", free_ports(1)[0], {})
    assert trouble is not None
    assert "cannot reach Kafka at [::1]:" in trouble.line
    for host in ("a" * 70 + ".example", "\x00", ".."):
        assert trouble_at(host, 9092, {}) is not None
