"""A token endpoint like an identity provider's: signed tokens, and the keys to verify them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER, AUDIENCE = "https://tokens.example.com", "kafka"


class TokenEndpoint:
    """Issues tokens to clients by their secrets, on loopback. A context manager.

    ``clients`` are secrets by client id, which is the token's subject (``sub``). ``refusing``: the
    status of every answer, if set; ``seconds``: a token's lifetime. ``asked`` are the requests so
    far: client ids and other fields.
    """

    def __init__(self, clients: dict[str, str], seconds: float = 3600.0) -> None:
        self.clients = clients
        self.seconds = seconds
        self.refusing: int | None = None
        self.answer: dict[str, Any] | None = None
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The URL of the token endpoint."""
        return f"http://127.0.0.1:{self._port}/token"

    @property
    def keys_url(self) -> str:
        """The URL of the keys with which a broker verifies tokens."""
        return f"http://127.0.0.1:{self._port}/keys"

    def start(self) -> None:
        """Listen, after a stop at the same port; does nothing while it listens."""
        if self._server is not None:
            return
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._say(200, {"keys": [endpoint.public_key()]})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                form = parse_qs(self.rfile.read(length).decode())
                self._say(*endpoint.decide(self.headers.get("Authorization", ""), form))

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def _say(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening; does nothing the second time."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def properties(self, client: str, **more: str) -> dict[str, str]:
        """Return librdkafka's properties of a client's login."""
        oauth = {
            "method": "oidc",
            "client.id": client,
            "client.secret": self.clients[client],
            "token.endpoint.url": self.url,
            **more,
        }
        return {"sasl.mechanism": "OAUTHBEARER"} | {
            f"sasl.oauthbearer.{name}": value for name, value in oauth.items()
        }

    def decide(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Return the status and answer of a request."""
        said = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client, _, secret = said.partition(":")
        self.asked.append((client, form))
        if self.refusing is not None:
            return self.refusing, {"error": "server_error"}
        if self.answer is not None:
            return 200, self.answer
        if self.clients.get(client) != secret or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client", "error_description": f"not {secret}"}
        return 200, {"access_token": self.token(client), "expires_in": self.seconds}

    def token(self, client: str) -> str:
        """Sign a token for a client."""
        now = time.time()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": client,
            "scope": "kafka",
            "iat": int(now),
            "exp": int(now + self.seconds),
        }
        head = _encoded(json.dumps({"alg": "RS256", "typ": "JWT", "kid": "one"}).encode())
        signed = f"{head}.{_encoded(json.dumps(claims).encode())}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"

    def public_key(self) -> dict[str, str]:
        """Return the key to verify signatures with, as a JWK."""
        numbers = self._key.public_key().public_numbers()
        return {
            "kty": "RSA",
            "kid": "one",
            "use": "sig",
            "alg": "RS256",
            "n": _encoded(numbers.n.to_bytes(256, "big")),
            "e": _encoded(numbers.e.to_bytes(3, "big")),
        }


@contextmanager
def away(endpoint: TokenEndpoint) -> Iterator[None]:
    """Stop an endpoint inside the context."""
    endpoint.stop()
    try:
        yield
    finally:
        endpoint.start()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
