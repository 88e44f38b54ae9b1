"""An OAuth bearer token, and the error when there is none."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import Any

#: The characters of a token: none that ends a field of the SASL message, or a line.
_VALUE = re.compile(r"[\x21-\x7e]{1,65536}")


class TokenError(Exception):
    """There is no token; the message says why, without secrets.

    ``passing``: the reason may end by itself, as when an endpoint restarts.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, never shown, and its expiry time in seconds since 1970."""

    value: str = field(repr=False)
    expires_at: float


def checked_token(value: object, expires_at: object, now: float) -> BearerToken:
    """Return a token with a valid format and expiry time; ``now`` in s. Raises TokenError."""
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise TokenError("what it returned is not a token")
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
        raise TokenError("the token has no expiry time")
    if not now < expires_at < now + 10 * 366 * 86400:
        raise TokenError(
            "the token has expired, or expires in years (seconds since 1970 are expected): compare "
            "the clocks of this machine and of its issuer"
        )
    return BearerToken(value, float(expires_at))


def expiry_claim(value: object) -> float | None:
    """Return the expiry time in a token (``exp`` of a JWT) in seconds since 1970; None without."""
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) != 3:
        return None
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
