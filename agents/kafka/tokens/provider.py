"""Tokens from the operator's own function: ``sasl.oauthbearer.token.provider``."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from caughtup.agents.kafka.tokens.token import BearerToken, TokenError, checked_token

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
