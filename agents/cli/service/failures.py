"""What keeps a command from being answered by a service: a line that says what to do."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

_BESIDE = "without --service the cluster itself is asked"


def unreachable(url: str, error: Exception, tls: bool) -> str:
    """Explain why there is no answer at all. ``tls``: whether TLS was spoken."""
    match error:
        case ConnectionRefusedError():
            return f"nothing listens at {url}: does the service run there (web_host, web_port)?"
        case socket.gaierror():
            return f"{url}: no such host; is its name right?"
        case TimeoutError():
            return f"{url} doesn't answer: is the address right, and nothing in between?"
        case ssl.SSLCertVerificationError():
            why = error.verify_message
            return (
                f"the certificate of {url} isn't trusted ({why}): --service-ca names who signs it"
            )
        case ssl.SSLError():
            return f"{url} speaks no TLS: try http://"
        case ConnectionResetError() | HTTPException() if not tls:
            return f"{url} breaks off: if it speaks TLS (web_tls_certificate), say https://"
        case HTTPException() | ConnectionError():
            return f"{url} broke off its answer: its log says why; {_BESIDE}"
    return f"cannot ask {url}: {getattr(error, 'strerror', None) or error}"


def refusal(url: str, status: int, said: str, token_file: Path | None) -> str:
    """Describe what an answer other than 200 means, and what to do."""
    match status:
        case 401 if token_file is None:
            return f"{url} wants its token: --token-file FILE, with what its web_token_file has"
        case 401:
            return f"{url} doesn't take the token in {token_file}: its web_token_file has another"
        case 421:
            name = urlsplit(url).hostname
            return f"{url} isn't asked by that name: add {name} to its web_allowed_hosts, or use its address"
        case 404:
            return f"{url} has no such answer: no caughtup service, or an older one; {_BESIDE}"
        case 301 | 302 | 303 | 307 | 308:
            return f"{url} redirects, which isn't followed: give the address that it has itself"
        case 503:
            return f"{url} has too much to do: {_first(said)}; try again in some seconds"
    return f"{url} answers {status}: {_first(said)}"


def not_there(status: int, said: str) -> str | None:
    """Return what a service says is not there; None for any other answer."""
    if status != 404:
        return None
    try:
        return _first(msgspec.json.decode(said, type=dict[str, str])["error"])
    except (msgspec.DecodeError, KeyError):
        return None


def _first(said: str) -> str:
    lines = said.split("\n")
    return "".join(c if c.isprintable() else " " for c in lines[0])[:200] or "and nothing else"
