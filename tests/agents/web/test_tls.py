"""TLS on the web port: a certificate that is rotated, broken, or was never there."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from caughtup.agents.configuration import watched_files
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.errors import UserError
from caughtup.agents.web.door import connections
from tests.support.observability.site import Site


class Files:
    """A certificate and its key in files, which can be issued anew."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "tls.crt"
        self.key = directory / "tls.key"
        self.authority = trustme.CA()
        self.issue()

    def issue(self) -> int:
        """Write another pair, and give the certificate's serial number."""
        issued = self.authority.issue_cert("127.0.0.1")
        self.key.write_bytes(issued.private_key_pem.bytes())
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        self.certificate.write_bytes(chain)
        return x509.load_pem_x509_certificate(chain).serial_number

    @property
    def settings(self) -> dict[str, Path]:
        return {"web_tls_certificate": self.certificate, "web_tls_key": self.key}

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.setattr(watched_files, "_LOOK_SECONDS", 0.0)
    return Files(tmp_path)


async def served(site: Site, files: Files) -> int:
    """Connect anew, and give the serial number of the certificate that is served."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", site.server.port, ssl=files.client()
    )
    writer.write(b"GET /ready HTTP/1.0\r\n\r\n")
    assert b"200 OK" in await reader.read()
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(certificate).serial_number


async def test_it_speaks_tls_and_nothing_else(files: Files) -> None:
    serial = files.issue()
    async with Site(**files.settings) as site:
        assert await served(site, files) == serial
        with pytest.raises(aiohttp.ClientError):
            await site.status("/ready")


async def test_a_rotated_certificate_is_served_to_the_next_who_connects(files: Files) -> None:
    async with Site(**files.settings) as site:
        first = await served(site, files)
        second = files.issue()
        assert second != first
        assert await served(site, files) == second


@pytest.mark.parametrize("broken", ["key", "certificate", "gone"])
async def test_a_broken_new_certificate_is_said_and_the_old_one_stays(
    broken: str, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="caughtup")
    serial = files.issue()
    async with Site(**files.settings) as site:
        if broken == "gone":
            files.certificate.unlink()
        elif broken == "certificate":
            files.certificate.write_text("half a certifi")
        else:  # of another pair
            files.key.write_bytes(files.authority.issue_cert("x").private_key_pem.bytes())
        for _ in range(3):
            assert await served(site, files) == serial
        said = [line for line in caplog.messages if "web_tls_certificate" in line]
        assert len(said) == 1
        assert str(files.certificate) in said[0]
        newer = files.issue()
        assert await served(site, files) == newer


async def test_who_does_not_finish_the_handshake_is_cut_off(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    async with Site(**files.settings) as site, site.connected() as connected:
        began = time.monotonic()
        assert await connected.ended() == b""
        assert time.monotonic() - began < 10


async def test_those_that_do_not_finish_the_handshake_make_room_for_the_next(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT", 2)
    async with Site(**files.settings) as site, AsyncExitStack() as connected:
        first, *_ = [await connected.enter_async_context(site.connected()) for _ in range(3)]
        assert await first.ended() == b""
        assert await served(site, files)
        assert site.health.web_refusals == {"connections": 2}


async def test_a_slow_header_is_cut_off_over_tls_too(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    async with Site(**files.settings) as site:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", site.server.port, ssl=files.client()
        )
        writer.write(b"GET /rea")
        async with asyncio.timeout(20):
            with pytest.raises(ConnectionResetError):
                await reader.read()
        writer.close()


@pytest.mark.parametrize("broken", ["missing", "empty", "mismatch", "encrypted"])
def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(
    broken: str, files: Files
) -> None:
    if broken == "missing":
        files.key.unlink()
    elif broken == "empty":
        files.certificate.write_text("")
    elif broken == "mismatch":
        files.key.write_bytes(trustme.CA().issue_cert("x").private_key_pem.bytes())
    else:
        key = load_pem_private_key(files.key.read_bytes(), None)
        encryption = BestAvailableEncryption(b"secret")
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    with pytest.raises(UserError) as failure:
        Site(**files.settings)
    assert failure.value.message.startswith("setting web_tls_certificate: ")
    assert str(files.certificate) in failure.value.message
    assert "\n" not in failure.value.message


def test_a_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="web_tls_key needs web_tls_certificate"):
        load_settings(web_tls_key=tmp_path / "tls.key")
