"""Brokers that clients can't connect to where they say that they are."""

from __future__ import annotations

from types import SimpleNamespace

from caughtup.agents.kafka.first_contact import broker_troubles
from caughtup.agents.settings import Settings
from caughtup.demo.processes.ports import free_ports
from tests.agents.kafka.test_diagnosis import answering, handshake
from tests.support.kafka.listeners import listening


def test_a_broker_that_is_elsewhere_than_it_says_is_named_with_the_config() -> None:
    (refused,) = free_ports(1)
    with listening(answering(b"", handshake(34))) as sound:
        places = {1: ("127.0.0.1", int(sound.rpartition(":")[2])), 2: ("127.0.0.1", refused)}
        brokers = {
            number: SimpleNamespace(id=number, host=host, port=port)
            for number, (host, port) in places.items()
        }
        metadata = SimpleNamespace(brokers=brokers)
        (line,) = broker_troubles(Settings(), metadata)  # type: ignore[arg-type]
    assert line.startswith(
        f"broker 2 has clients connect to 127.0.0.1:{refused} (advertised.listeners): cannot reach"
    )
