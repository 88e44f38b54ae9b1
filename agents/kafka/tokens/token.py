"""A token of OAuth, and why there is none."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import Any

#: What a token may consist of: nothing that ends a field of SASL's message, or a line.
_VALUE = re.compile(r"[\x21-\x7e]{1,65536}")


class TokenError(Exception):
    """There is no token: why, in words that hold no secret.

    ``passing``: it may be over by itself, as when an endpoint starts anew.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and until when it is good, in seconds since 1970; it is never shown."""

    value: str = field(repr=False)
    expires_at: float


def checked_token(value: object, expires_at: object, now: float) -> Token:
    """Return a token that can be sent. Raises TokenError."""
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise TokenError("what it returned is not a token")
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
        raise TokenError("the token has no expiry time")
    if not now < expires_at < now + 10 * 366 * 86400:
        raise TokenError(
            "the token has expired, or expires in years (seconds since 1970 are expected): compare "
            "the clocks of this machine and of its issuer"
        )
    return Token(value, float(expires_at))


def expiry_claim(value: object) -> float | None:
    """Return until when a token says that it is good (``exp`` of a JWT), if it does."""
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) != 3:
        return None
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
