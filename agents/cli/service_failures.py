"""What a failed request to a service means, and what to do, in one line each."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

_BESIDE = "without --service, caughtup asks the cluster itself"


def unreachable(url: str, error: Exception, tls: bool) -> str:
    """Return the reason for no answer; ``tls`` is whether the URL is https."""
    match error:
        case ConnectionRefusedError():
            return f"nothing listens at {url}: does the service run there (web_host, web_port)?"
        case socket.gaierror():
            return f"{url}: no such host; check its name"
        case TimeoutError():
            return f"{url} doesn't answer: check the address, and proxies and firewalls on the way"
        case ssl.SSLCertVerificationError():
            why = error.verify_message
            return f"the certificate of {url} isn't trusted ({why}): name the file of the authority that signs it with --service-ca"
        case ssl.SSLError():
            return f"{url} does not speak TLS: try http://"
        case ConnectionResetError() | HTTPException() if not tls:
            return (
                f"{url} closes the connection: if it speaks TLS (web_tls_certificate), use https://"
            )
        case HTTPException() | ConnectionError():
            return f"{url} ended its answer early: its log says why; {_BESIDE}"
    return f"cannot ask {url}: {getattr(error, 'strerror', None) or error}"


def refusal(url: str, status: int, body: str, token_file: Path | None) -> str:
    """Return the meaning of an answer other than 200, and what to do."""
    match status:
        case 401 if token_file is None:
            return f"{url} requires its token: give --token-file FILE with the token of its web_token_file"
        case 401:
            return f"{url} refuses the token in {token_file}: its web_token_file has another one"
        case 421:
            name = urlsplit(url).hostname
            return f"{url} refuses requests to the host {name}: add {name} to its web_allowed_hosts, or use the IP address"
        case 404:
            return f"{url} does not know this request: it is not a caughtup service, or an older release; {_BESIDE}"
        case 301 | 302 | 303 | 307 | 308:
            return (
                f"{url} redirects, and caughtup follows no redirect: give the service's own address"
            )
        case 503:
            return f"{url} is busy: {_first(body)}; try again in a few seconds"
    return f"{url} answers {status}: {_first(body)}"


def not_there(status: int, body: str) -> str | None:
    """Return a service's own reason for a 404, None for any other answer."""
    if status != 404:
        return None
    try:
        return _first(msgspec.json.decode(body, type=dict[str, str])["error"])
    except (msgspec.DecodeError, KeyError):
        return None


def _first(body: str) -> str:
    lines = body.split("\n")
    return "".join(c if c.isprintable() else " " for c in lines[0])[:200] or "without a reason"
