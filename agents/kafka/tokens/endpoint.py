"""Get a token from an HTTP endpoint by client id and secret (OAuth's client credentials grant)."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

from caughtup.agents.kafka.tokens.token import BearerToken, TokenError, checked_token, expiry_claim
from caughtup.models.security.kafka_names import KafkaProperties
from caughtup.models.security.logins import ClientCredentials

#: The time-out for opening a connection, and for each part of the answer.
_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 1 << 20
#: An OAuth error code. No other part of an error answer is shown: it may repeat the secret.
_ERROR = re.compile(r"[a-z_]{1,40}")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the client's secret to another server."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return None, so that a redirect is an error."""


def fetch_token(endpoint: ClientCredentials, kafka: KafkaProperties) -> BearerToken:
    """Ask an endpoint for a token. Raises TokenError, whose message names the endpoint."""
    credentials = base64.b64encode(f"{endpoint.client_id}:{endpoint.client_secret}".encode())
    form = {"grant_type": "client_credentials"}
    if endpoint.scope:
        form["scope"] = endpoint.scope
    request = urllib.request.Request(
        endpoint.url,
        urllib.parse.urlencode(form).encode(),
        {
            "Accept": "application/json",
            "Authorization": f"Basic {credentials.decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    began = time.time()
    try:
        return _read(_answer(request, kafka), began)
    except TokenError as error:
        where = f"no token from {_shown(endpoint.url)}"
        raise TokenError(f"{where}: {error}", passing=error.passing) from None


def _answer(request: urllib.request.Request, kafka: KafkaProperties) -> bytes:
    try:
        context = _context(kafka)
    except (OSError, ValueError):
        raise TokenError("https.ca.* has no certificate in PEM") from None
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
            return _body(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from None
    except ssl.SSLCertVerificationError:
        raise _UNVERIFIED from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise _UNVERIFIED from None
        raise TokenError(_system_words(error.reason), passing=True) from None
    except (OSError, http.client.HTTPException) as error:
        raise TokenError(_system_words(error), passing=True) from None
    except ValueError:
        raise TokenError("it is not an address") from None


def _body(answer: http.client.HTTPResponse) -> bytes:
    """Read an answer that may come slowly, in small parts. Raises OSError after 5 s."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    found = b""
    while (part := answer.read1(_MOST_BYTES)) and len(found) <= _MOST_BYTES:
        found += part
        if time.monotonic() > deadline:
            raise TimeoutError
    return found


_UNVERIFIED = TokenError(
    "its certificate cannot be verified: name the file of its authority in https.ca.location"
)


def _context(kafka: KafkaProperties) -> ssl.SSLContext:
    if (text := kafka.get("https.ca.pem")) is not None:
        return ssl.create_default_context(cadata=str(text))
    location = kafka.get("https.ca.location")
    return ssl.create_default_context(cafile=None if location in (None, "probe") else str(location))


def _refused(error: urllib.error.HTTPError) -> TokenError:
    try:
        code = json.loads(error.read(_MOST_BYTES))["error"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        code = None
    named = f" ({code})" if isinstance(code, str) and _ERROR.fullmatch(code) else ""
    passing = error.code in (408, 425, 429) or error.code >= 500
    if error.code in (400, 401, 403) and not passing:
        return TokenError(
            f"it answers {error.code}{named}: check sasl.oauthbearer.client.id, .client.secret and "
            ".scope"
        )
    return TokenError(f"it answers {error.code}{named}", passing=passing)


def _system_words(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return f"no answer within {_TIMEOUT_SECONDS:g} s"
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there (connection refused)"
    if isinstance(reason, ssl.SSLError):
        return "no TLS connection"
    return getattr(reason, "strerror", None) or "the connection broke"


def _read(answer: bytes, began: float) -> BearerToken:
    try:
        found = json.loads(answer)
        value = found["access_token"]
        seconds = found.get("expires_in")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise TokenError("its answer is not JSON with an access_token") from None
    # The earlier of both ends: brokers check the claim, and clocks differ.
    ends = [expiry_claim(value)]
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        ends.append(began + seconds)
    known = [end for end in ends if end is not None]
    return checked_token(value, min(known, default=None), began)


def _shown(url: str) -> str:
    """Return a URL without the parts that may be secret: user name, password and query."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
