"""OAuth bearer tokens, and those of the operator's own function (``token.provider``)."""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

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
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return float(claims["exp"])
    except (binascii.Error, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None


#: Takes the text of ``sasl.oauthbearer.config``; returns a token and its expiry time, in seconds
#: since 1970.
ProvideToken = Callable[[str], tuple[str, float]]


def load_provider(name: str) -> ProvideToken:
    """Import ``MODULE:FUNCTION``. Raises TokenError, whose message says what is missing."""
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function, None)
    except ImportError as error:
        raise TokenError(f"cannot import {module}: {error}") from None
    except Exception as error:  # noqa: BLE001 - whatever the operator's module does
        raise TokenError(f"cannot import {module}: {type(error).__name__}") from None
    if not callable(found):
        raise TokenError(f"{module} has no function {function}")
    provide: ProvideToken = found
    return provide


def provided_token(name: str, config: str) -> BearerToken:
    """Call the operator's function. Raises TokenError.

    Messages of other exceptions are left out: they may hold secrets.
    """
    provide = load_provider(name)
    try:
        value, expires_at = provide(config)
    except TokenError as error:
        raise TokenError(f"no token from {name}: {error}", passing=error.passing) from None
    except Exception as error:
        raise TokenError(
            f"no token from {name}: it raised {type(error).__name__}", passing=True
        ) from error
    try:
        return checked_token(value, expires_at, time.time())
    except TokenError as error:
        raise TokenError(f"no token from {name}: {error}") from None
