"""Where tables are: Hadoop's URIs and options as the Delta library wants them.

Workers and the driver read and write tables by the library's own clients, so what Spark was given
for s3a, abfs or gs is handed on here, and nowhere else. Environment variables count where Hadoop
has no option, on every worker as on the driver.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, PyFileSystem

from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:  # caughtup history reads tables where there is no Spark
    from pyspark.sql import SparkSession

#: The library's name for each of S3A's options that has one.
_S3A = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
    "endpoint.region": "AWS_REGION",
}
_AZURE = {
    "fs.azure.account.key": "AZURE_STORAGE_ACCOUNT_KEY",
    "fs.azure.account.oauth2.client.id": "AZURE_CLIENT_ID",
    "fs.azure.account.oauth2.client.secret": "AZURE_CLIENT_SECRET",
}
_GOOGLE = {"google.cloud.auth.service.account.json.keyfile": "GOOGLE_SERVICE_ACCOUNT"}
#: The library's URIs by Hadoop's, and whose environment variables are for them.
_SCHEMES = {
    "file": ("file", ""),
    "s3": ("s3", "AWS_"),
    "s3a": ("s3", "AWS_"),
    "s3n": ("s3", "AWS_"),
    "abfs": ("abfss", "AZURE_"),
    "abfss": ("abfss", "AZURE_"),
    "gs": ("gs", "GOOGLE_"),
    "hdfs": ("hdfs", ""),
    "viewfs": ("viewfs", ""),
}
_SECRET = re.compile("key|secret|token|password|sas", re.IGNORECASE)
_PUBLIC = ("AWS_ALLOW_HTTP", "AWS_REGION", "AWS_ENDPOINT_URL")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_MOST_CHARACTERS = 500
Option = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Store:
    """A place for tables, and how the library gets there: credentials are never shown."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def at(self, name: str) -> Store:
        """Return the place of a table below this one."""
        return replace(self, uri=f"{self.uri}/{name}")

    def filesystem(self) -> PyFileSystem:
        """Return the files below the place, for Arrow."""
        return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def names(self) -> list[str]:
        """Name what is in the place, in order; nothing where there is none.

        Raises CaughtupError ``output_unwritable`` where the store doesn't answer.
        """
        try:
            found = self.filesystem().get_file_info(FileSelector("", allow_not_found=True))
        except TableNotFoundError:
            return []
        except (DeltaError, OSError) as error:
            raise CaughtupError(
                "output_unwritable", f"can't read {self.uri}: {self.said(error)}"
            ) from error
        return sorted(one.base_name for one in found)

    def said(self, error: Exception) -> str:
        """Return an error of the library's in one line, without any of our secrets."""
        lines = (line.strip(" \t↳") for line in _COLOUR.sub("", str(error)).splitlines())
        text = ": ".join(line.rstrip(":") for line in lines if line) or type(error).__name__
        for name, value in self.options.items():
            if value and name not in _PUBLIC and _SECRET.search(name):
                text = text.replace(value, "***")
        return text[:_MOST_CHARACTERS]


def store_of(
    uri: str, option: Option = lambda _: None, environment: Mapping[str, str] = os.environ
) -> Store:
    """Return where a URI or path of Hadoop's is; ``option`` asks for one of Hadoop's options.

    Raises CaughtupError ``output_unwritable`` for a file system that the library doesn't know.
    """
    uri = uri.rstrip("/")
    default = option("fs.defaultFS") or "file:///"
    if "://" not in uri and not uri.startswith("file:"):
        if not default.startswith("file:"):
            uri = default.rstrip("/") + "/" + uri.lstrip("/")
        else:
            return Store(os.path.abspath(uri))
    parts = urlsplit(uri)
    if parts.scheme not in _SCHEMES:
        raise CaughtupError(
            "output_unwritable",
            f"tables cannot be at {uri}: the known schemes are {', '.join(_SCHEMES)}",
        )
    scheme, prefix = _SCHEMES[parts.scheme]
    if scheme == "file":
        return Store(os.path.abspath(unquote(parts.path)))
    given = {name: v for name, v in environment.items() if prefix and name.startswith(prefix)}
    if scheme == "s3":
        given |= _s3_options(parts.netloc, option)
    elif scheme == "abfss":
        given |= _azure_options(parts.netloc, option)
    elif scheme == "gs":
        given |= _mapped(_GOOGLE, option)
    return Store(f"{scheme}://{parts.netloc}{parts.path}", given)


def store_for(spark: SparkSession, uri: str, environment: Mapping[str, str] = os.environ) -> Store:
    """Return where a URI is, by the options that Spark has for Hadoop. Raises as store_of does."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    return store_of(uri, hadoop.get, environment)


def _mapped(names: Mapping[str, str], option: Option) -> dict[str, str]:
    found = ((ours, option(name)) for name, ours in names.items())
    return {ours: value for ours, value in found if value}


def _s3_options(bucket: str, option: Option) -> dict[str, str]:
    def asked(name: str) -> str | None:
        return option(f"fs.s3a.bucket.{bucket}.{name}") or option(f"fs.s3a.{name}")

    given = _mapped(_S3A, asked)
    if endpoint := asked("endpoint"):
        if "://" not in endpoint:
            tls = (asked("connection.ssl.enabled") or "true").lower() == "true"
            endpoint = f"{'https' if tls else 'http'}://{endpoint}"
        given["AWS_ENDPOINT_URL"] = endpoint
        if endpoint.startswith("http://"):
            given["AWS_ALLOW_HTTP"] = "true"
    if (asked("path.style.access") or "").lower() == "true":
        given["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "false"
    return given


def _azure_options(authority: str, option: Option) -> dict[str, str]:
    """Return options of Azure's; Hadoop has them by account, or for all accounts."""
    account = authority.rpartition("@")[2]
    return _mapped(_AZURE, lambda name: option(f"{name}.{account}") or option(name))
