"""librdkafka's clients that live as long as the service, and get new credentials after a rotation.

librdkafka takes credentials when a client is made, and logs in with these at each connection until
it is given others.
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
    """A consumer that can have weak references, as only classes defined in Python can."""


class _Producer(Producer):
    """A producer that can have weak references."""


_Client = TypeVar("_Client", _Consumer, _Producer, AdminClient)

_lock = Lock()
_clients: WeakSet[Any] = WeakSet()


def consumer(settings: Settings, **extra: Any) -> Consumer:
    """Make a consumer."""
    return _kept(_Consumer(rdkafka_config(settings, **extra)))


def producer(settings: Settings, **extra: Any) -> Producer:
    """Make a producer."""
    return _kept(_Producer(rdkafka_config(settings, **extra)))


def admin_client(settings: Settings, **extra: Any) -> AdminClient:
    """Make an admin client."""
    return _kept(AdminClient(rdkafka_config(settings, **extra)))


def set_credentials(username: str, password: str) -> int:
    """Give new credentials to every existing client, and return the number of clients.

    Open connections stay; the next logins use the new credentials.
    """
    with _lock:
        clients = list(_clients)
    for client in clients:
        with suppress(RuntimeError):  # the client is closed
            client.set_sasl_credentials(username, password)
    return len(clients)


def _kept(client: _Client) -> _Client:
    with _lock:
        _clients.add(client)
    return client
