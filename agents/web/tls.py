"""TLS for the page and the metrics, with a certificate that may be rotated on disk."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from caughtup.agents.configuration.watched_files import WatchedFiles
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings

log = logging.getLogger(__name__)


def web_tls(settings: Settings) -> ssl.SSLContext | None:
    """Return the context to listen with, None without TLS. Raises UserError for bad files."""
    if settings.web_tls_certificate is None:
        return None
    return _ReloadedCertificate(settings.web_tls_certificate, settings.web_tls_key).listening


class _ReloadedCertificate:
    """A certificate as it is on disk; each connection looks whether there is a new one."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._files = (certificate, key)
        self._watched = WatchedFiles([path for path in self._files if path is not None])
        try:
            self.listening = self._current = self._loaded()
        except (OSError, ValueError) as error:
            raise UserError(f"setting web_tls_certificate: {_reason(error, certificate)}") from None
        # Called in every handshake, and may give the connection another context: a context that
        # is in use would be left with half of a pair of files that don't belong together.
        self.listening.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: object) -> None:
        del name, context
        if self._watched.changed():
            try:
                self._current = self._loaded()
                log.info("now using the new web_tls_certificate: %s", self._files[0])
            except (OSError, ValueError) as error:
                reason = _reason(error, self._files[0])
                log.warning("web_tls_certificate has changed but cannot be used: %s", reason)
        connection.context = self._current

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Without this an encrypted key would be asked for on the terminal.
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
