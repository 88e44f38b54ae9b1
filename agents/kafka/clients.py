"""librdkafka's clients that live as long as the service: they learn of a password that is rotated.

librdkafka takes credentials when a client is made, and logs in with these whenever it connects,
until it is told others.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.settings import Settings


class _Consumer(Consumer):
    """A consumer that can be referred to weakly, as only classes of Python's can."""


class _Producer(Producer):
    """A producer of the same kind."""


_Client = TypeVar("_Client", _Consumer, _Producer, AdminClient)

_lock = Lock()
_living: WeakSet[Any] = WeakSet()


def consumer(settings: Settings, **extra: Any) -> Consumer:
    """Make a consumer."""
    return _kept(_Consumer(rdkafka_config(settings, **extra)))


def producer(settings: Settings, **extra: Any) -> Producer:
    """Make a producer."""
    return _kept(_Producer(rdkafka_config(settings, **extra)))


def admin_client(settings: Settings, **extra: Any) -> AdminClient:
    """Make an admin client."""
    return _kept(AdminClient(rdkafka_config(settings, **extra)))


def log_in_with(username: str, password: str) -> int:
    """Have every client that lives log in with these from now on, and return how many there are.

    Connections that they have stay.
    """
    with _lock:
        clients = list(_living)
    for client in clients:
        with suppress(RuntimeError):  # one that is closed
            client.set_sasl_credentials(username, password)
    return len(clients)


def _kept(client: _Client) -> _Client:
    with _lock:
        _living.add(client)
    return client
