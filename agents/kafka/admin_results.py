"""Wait for the result of an admin request, no longer than the request may take."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

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
