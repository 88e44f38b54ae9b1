"""A Kerberos realm on loopback, with Debian's own key server: users, services and keytabs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from caughtup.demo.processes.children import Process, Processes, free_ports

REALM = "CAUGHTUP.TEST"
_SBIN = "/usr/sbin:/usr/bin:/bin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_CLIENTS = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {realm}
"""
_SERVER = """\
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
}}
"""


def lacking() -> str | None:
    """Return the Kerberos programs that this machine lacks; None if it has all."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_SBIN) is None]
    if not absent:
        return None
    return f"no {', '.join(absent)}: apt-get install krb5-kdc krb5-admin-server krb5-user"


class Realm:
    """A key server, with its data in a directory. A context manager."""

    def __init__(self, directory: Path, processes: Processes) -> None:
        self._directory = directory
        self._processes = processes
        self._process: Process | None = None
        (self._port,) = free_ports(1)
        self.config = directory / "krb5.conf"
        self.cache = directory / "tickets"

    @property
    def environment(self) -> dict[str, str]:
        """The environment with which a client finds the realm and its tickets."""
        return {"KRB5_CONFIG": str(self.config), "KRB5CCNAME": f"FILE:{self.cache}"}

    def __enter__(self) -> Self:
        given = {"realm": REALM, "port": self._port, "directory": self._directory}
        self.config.write_text(_CLIENTS.format(**given))
        (self._directory / "kdc.conf").write_text(_SERVER.format(**given))
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the realm")
        self._process = self._processes.start(
            "krb5kdc", [str(shutil.which("krb5kdc", path=_SBIN)), "-n"], self._of_server()
        )
        deadline = time.monotonic() + 30
        while not self._answers():
            assert time.monotonic() < deadline, self._process.output()
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()

    def keytab(self, principal: str) -> Path:
        """Create a principal, and return its keytab file."""
        path = self._directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}")
        return path

    def get_ticket(self, principal: str, keytab: Path) -> None:
        """Log in as a principal from its keytab."""
        self._run("kinit", "-k", "-t", str(keytab), f"{principal}@{REALM}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1):
                return True
        except OSError:
            return False

    def _of_server(self) -> dict[str, str]:
        return {**self.environment, "KRB5_KDC_PROFILE": str(self._directory / "kdc.conf")}

    def _run(self, *command: str) -> None:
        ran = subprocess.run(
            [str(shutil.which(command[0], path=_SBIN)), *command[1:]],
            env={**os.environ, **self._of_server()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
