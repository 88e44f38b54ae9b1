"""Read secrets in files again when the files change, and use them for later logins."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from mode import Service

from caughtup.agents.configuration.kafka_properties import SecretError, read_secret
from caughtup.agents.configuration.watched_files import WatchedFiles
from caughtup.agents.kafka.clients import set_credentials
from caughtup.agents.settings import Settings

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
_PASSWORD, _USER = "sasl.password", "sasl.username"
#: Files that clients themselves read, once, when they are made.
_TLS_FILES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.crl.location",
    "ssl.key.location",
    "ssl.keystore.location",
)


class SecretFiles(Service):
    """Reads the secrets of ``settings.kafka`` again whenever their files change.

    While a file cannot be read, the secret read before stays in use. A new password is used by all
    clients from their next login on. The other secrets open keys, which clients load when they are
    made: they take effect at the next start, like keys and certificates; the log says so.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._watched = WatchedFiles(list(settings.secret_files.values()))
        self._unread: dict[str, str] = {}
        files = {name: settings.kafka.get(name) for name in _TLS_FILES}
        self._tls = {
            name: WatchedFiles([Path(path)])
            for name, path in files.items()
            if isinstance(path, str) and path != "probe"
        }

    @Service.task
    async def _run(self) -> None:
        if not self._settings.secret_files and not self._tls:
            return
        await asyncio.to_thread(self.read_again)  # they may have changed since the start
        while not self.should_stop:
            await self.sleep(_LOOK_SECONDS)
            changed: bool = await asyncio.to_thread(self._watched.changed)
            if self._unread or changed:
                await asyncio.to_thread(self.read_again)
            await asyncio.to_thread(self.look_at_certificates)

    def look_at_certificates(self) -> None:
        """Log which TLS files have changed."""
        for name, watched in self._tls.items():
            if watched.changed():
                log.warning(
                    "%s: the file has changed; the change takes effect at the next start", name
                )

    def read_again(self) -> None:
        """Read every secret again, and give changed ones to the clients."""
        kafka = self._settings.kafka
        for name, path in self._settings.secret_files.items():
            try:
                secret = read_secret(path)
            except SecretError as error:
                if self._unread.get(name) != str(error):
                    log.warning(
                        "%s_file: %s: %s; the former content stays in use", name, path, error
                    )
                self._unread[name] = str(error)
                continue
            self._unread.pop(name, None)
            if secret == kafka[name]:
                continue
            kafka[name] = secret
            if name == _PASSWORD:
                count = set_credentials(str(kafka[_USER]), secret)
                log.info("%s_file has changed; clients that use it from now on: %d", name, count)
            else:
                log.warning("%s_file has changed; the change takes effect at the next start", name)
