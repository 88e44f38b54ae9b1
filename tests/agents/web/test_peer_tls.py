"""Instances ask each other over TLS: whom they trust, after a renewal too, and who gets the token."""

from __future__ import annotations

import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web.access import AllowedHosts
from caughtup.agents.web.addresses import MISSING
from caughtup.models.sharing import Peer
from tests.agents.web.test_tls import Files, files
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import cluster_state, everything

__all__ = ["files"]

PATHS = [f"/api/lag?group={GROUP}", "/api/lag", "/api/lag?limit=100", "/api/view?view=overview"]


@asynccontextmanager
async def asking(having: Files, other: Files) -> AsyncIterator[Site]:
    """Run two instances, of which the one that is returned has no groups."""
    async with (
        Site(everything(), Health(ready=True), **having.settings) as one,
        Site(cluster_state(), Health(ready=True), **other.settings) as two,
    ):
        held = two.state.held
        held.count, held.numbers = 1, frozenset()
        held.others = {0: Peer("host:1", one.url("", "https"))}
        yield two


async def has_groups(site: Site, files: Files, path: str) -> bool:
    """Return whether an answer has the groups of the other instance."""
    async with site.client.get(site.url(path, "https"), ssl=files.client()) as answer:
        body = await answer.read()
        if (answer.status, MISSING in answer.headers) != (200, False):
            assert answer.status == 503 or answer.headers[MISSING] == "host:1"
            return False
        return f'"{GROUP}"'.encode() in body


async def test_instances_with_the_same_certificate_trust_each_other(files: Files) -> None:
    async with asking(files, files) as site:
        for path in PATHS:
            assert await has_groups(site, files, path)


async def test_the_same_certificate_need_not_have_the_address(files: Files) -> None:
    issued = files.authority.issue_cert("caughtup.example.com")
    files.key.write_bytes(issued.private_key_pem.bytes())
    files.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    async with asking(files, files) as site:
        context = files.client()
        context.check_hostname = False
        for path in PATHS:
            async with site.client.get(site.url(path, "https"), ssl=context) as answer:
                assert f'"{GROUP}"'.encode() in await answer.read()


async def test_another_certificate_has_to_have_the_address(files: Files, tmp_path: Path) -> None:
    (folder := tmp_path / "other").mkdir()
    other = Files(folder)
    issued = files.authority.issue_cert("caughtup.example.com")
    files.key.write_bytes(issued.private_key_pem.bytes())
    files.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    with other.certificate.open("ab") as chain:
        chain.write(files.authority.cert_pem.bytes())
    async with asking(files, other) as site:
        for path in PATHS:
            assert not await has_groups(site, other, path)


async def test_each_may_have_a_certificate_of_its_own_if_the_file_has_the_ca(
    files: Files, tmp_path: Path
) -> None:
    (folder := tmp_path / "other").mkdir()
    other = Files(folder)
    async with asking(files, other) as site:
        for path in PATHS:
            assert not await has_groups(site, other, path)
    with other.certificate.open("ab") as chain:
        chain.write(files.authority.cert_pem.bytes())
    async with asking(files, other) as site:
        for path in PATHS:
            assert await has_groups(site, other, path)


async def test_a_renewed_certificate_is_trusted_without_a_restart(
    files: Files, tmp_path: Path
) -> None:
    (folder := tmp_path / "other").mkdir()
    other = Files(folder)

    def copy() -> None:
        shutil.copy(files.certificate, other.certificate)
        shutil.copy(files.key, other.key)

    copy()
    async with asking(files, other) as site:
        for path in PATHS:
            assert await has_groups(site, files, path)
        files.authority = type(files)(folder).authority  # of another CA, as a self-signed one is
        files.issue()
        copy()
        for path in PATHS:
            assert await has_groups(site, files, path)
        other.certificate.write_text("half a certifi")
        for path in PATHS:
            assert await has_groups(site, files, path)


@pytest.mark.parametrize("address", ["http://192.0.2.1:8080", "http://127.0.0.1:8080"])
async def test_the_token_is_not_sent_without_tls(
    address: str, files: Files, tmp_path: Path
) -> None:
    (token := tmp_path / "token").write_text("tell-nobody")
    bearer = {"Authorization": "Bearer tell-nobody"}
    for scheme, settings in (
        ("https", files.settings),
        ("http", {"web_address": "https://proxy.example.com"}),
    ):
        async with Site(web_token_file=token, **settings) as site:
            held = site.state.held
            held.count, held.numbers = 1, frozenset()
            held.others = {0: Peer("host:1", address)}
            url = site.url(f"/api/lag?group={GROUP}", scheme)
            async with site.client.get(url, ssl=files.client(), headers=bearer) as answer:
                assert answer.status == 503
                why = (await answer.json())["error"]
            assert "the token is not sent without TLS: set web_tls_certificate there" in why


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
@pytest.mark.parametrize("name", ["caughtup-0", "Host_1.Example.com"])
async def test_an_instance_knows_the_host_of_the_address_that_it_announces(
    host: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    async with Site(web_host=host) as site:
        announced = urlsplit(site.server.address)
        assert AllowedHosts(host, ()).allows(announced.netloc)
        headers = {"Host": announced.netloc}
        assert await site.status("/ready", headers=headers) == 200
