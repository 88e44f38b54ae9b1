"""TLS for the web port, with a certificate that may be rotated on disk."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from caughtup.agents.configuration.watched_files import WatchedFiles
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings

log = logging.getLogger(__name__)


def web_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the server's context, None without TLS. Raises UserError for bad files."""
    if settings.web_tls_certificate is None:
        return None
    return _ReloadedCertificate(settings.web_tls_certificate, settings.web_tls_key).server_context


class _ReloadedCertificate:
    """A certificate that is read again if its files changed, checked on each handshake."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._files = (certificate, key)
        self._watched = WatchedFiles([path for path in self._files if path is not None])
        try:
            self.server_context = self._current = self._load()
        except (OSError, ValueError) as error:
            raise UserError(f"setting web_tls_certificate: {_reason(error, certificate)}") from None
        # A new context for each change: loading a mismatched pair of files into the context in
        # use would leave it with half of them.
        self.server_context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: object) -> None:
        del name, context
        if self._watched.changed():
            try:
                self._current = self._load()
                log.info("now using the new web_tls_certificate: %s", self._files[0])
            except (OSError, ValueError) as error:
                reason = _reason(error, self._files[0])
                log.warning("web_tls_certificate has changed but cannot be used: %s", reason)
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Otherwise OpenSSL asks for the password of an encrypted key on the terminal.
        context.load_cert_chain(*self._files, password=_no_password)
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; an unencrypted one is needed")


def _reason(error: Exception, certificate: Path) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{certificate}: {error.reason or 'no certificate and key in PEM'}"
    if isinstance(error, OSError):
        return f"{error.filename or certificate}: {error.strerror}"
    return f"{certificate}: {error}"
