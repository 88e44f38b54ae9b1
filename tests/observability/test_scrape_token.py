"""A real Prometheus scrapes over TLS with the token, as docs/operating.md says how."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import trustme

from caughtup.demo.processes.children import Processes
from tests.support.observability.prometheus import Prometheus
from tests.support.observability.site import Site

SECONDS = 60.0


async def test_prometheus_scrapes_over_tls_with_the_token(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "tls.pem")
    (tmp_path / "token").write_text("s3cret\n")
    files = {
        "web_tls_certificate": tmp_path / "tls.pem",
        "web_tls_key": None,  # it is in the same file
        "web_token_file": tmp_path / "token",
    }
    with Processes() as processes:
        async with Site(**files) as site:
            prometheus = Prometheus(
                processes,
                f"127.0.0.1:{site.server.port}",
                tmp_path,
                scheme="https",
                authorization={"credentials_file": str(tmp_path / "token")},
                tls_config={"ca_file": str(tmp_path / "ca.pem")},
            )
            await asyncio.to_thread(prometheus.wait_ready)
            deadline = time.monotonic() + SECONDS
            while not await asyncio.to_thread(prometheus.scraped_after, 0.0):
                targets = await asyncio.to_thread(prometheus.api, "targets")
                assert time.monotonic() < deadline, targets["activeTargets"]
                await asyncio.sleep(0.1)
