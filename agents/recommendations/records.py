"""Recommendations as bytes, never larger than their readers take."""

from __future__ import annotations

from caughtup.models.assignors.following.recommendation import MAX_BYTES as MOST_READ
from caughtup.models.decisions.lighter_recommendation import lighter_recommendations
from caughtup.models.decisions.recommendation import Recommendation
from caughtup.models.decisions.recommendation_fields import recommendation_fields
from caughtup.models.errors import CaughtupError
from caughtup.models.records.recommendations import FORMAT

MAX_BYTES = MOST_READ // 2


def encode(recommended: Recommendation, most_bytes: int = MAX_BYTES) -> bytes:
    """Encode a recommendation as its record, without its heaviest parts if it were too large.

    Raises CaughtupError ``too_large`` if it is even then.
    """
    value = b""
    for lighter in lighter_recommendations(recommended):
        value = FORMAT.encode_fields(recommendation_fields(lighter))
        if len(value) <= most_bytes:
            return value
    raise CaughtupError("too_large", f"{len(value)} bytes, of {most_bytes} at most")
