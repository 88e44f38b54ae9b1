"""librdkafka's clients, which get new credentials after a rotation, and results of admin requests.

librdkafka takes credentials when a client is made, and logs in with these at each connection until
it is given others.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import TypeVar
from weakref import WeakSet

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.settings import Settings

#: The client's time-out for a request, with the time to connect.
REQUEST_SECONDS = 10.0
#: A client that has not ended a request after this time never will.
WEDGED_SECONDS = REQUEST_SECONDS + 5.0

_T = TypeVar("_T")


def result_of(future: Future[_T], within_seconds: float = WEDGED_SECONDS) -> _T:
    """Return the result of a request.

    Raises KafkaException, also when the client itself does not end the request in time.
    """
    try:
        return future.result(within_seconds)
    except TimeoutError:
        wedged = KafkaError(KafkaError._TIMED_OUT, "the client itself doesn't answer")
        raise KafkaException(wedged) from None


class _Consumer(Consumer):
    """A consumer that can have weak references, as only classes defined in Python can."""


class _Producer(Producer):
    """A producer that can have weak references."""


_Client = TypeVar("_Client", _Consumer, _Producer, AdminClient)

_lock = Lock()
_clients: WeakSet[_Consumer | _Producer | AdminClient] = WeakSet()


def consumer(settings: Settings, **extra: object) -> Consumer:
    """Make a consumer."""
    return _kept(_Consumer(rdkafka_config(settings, **extra)))


def producer(settings: Settings, **extra: object) -> Producer:
    """Make a producer."""
    return _kept(_Producer(rdkafka_config(settings, **extra)))


def admin_client(settings: Settings, **extra: object) -> AdminClient:
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
