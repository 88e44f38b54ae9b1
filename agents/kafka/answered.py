"""What a client's future has, waited for no longer than its request may take."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

#: So long may a request take, its connection included; the client ends it then.
REQUEST_SECONDS = 10.0
#: A client that hasn't ended a request by then never will.
WEDGED_SECONDS = REQUEST_SECONDS + 5.0

_T = TypeVar("_T")


def answered(future: Future[_T], within_seconds: float = WEDGED_SECONDS) -> _T:
    """Return a request's answer. Raises KafkaException, also where the client never ends it."""
    try:
        return future.result(within_seconds)
    except TimeoutError:
        wedged = KafkaError(KafkaError._TIMED_OUT, "the client itself doesn't answer")
        raise KafkaException(wedged) from None
