"""Stores of tables: convert Hadoop's URIs and options to those of the Delta library.

The driver and the workers access tables by the library's own clients, so Spark's options for s3a,
abfs or gs are converted here. Environment variables count where Hadoop has no option, on workers as
on the driver.
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

if TYPE_CHECKING:  # `caughtup history` reads tables without Spark
    from pyspark.sql import SparkSession

#: The library's option for each of S3A's options.
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
#: By Hadoop's URI scheme: the library's scheme, and the prefix of its environment variables.
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
    """A place for tables: its URI, and the library's options, which are never shown."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def at(self, name: str) -> Store:
        """Return the place of a table below this one."""
        return replace(self, uri=f"{self.uri}/{name}")

    def filesystem(self) -> PyFileSystem:
        """Return a file system for Arrow, whose paths are relative to this place."""
        return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def names(self) -> list[str]:
        """Return the sorted names of files and folders in this place; empty if it does not exist.

        Raises CaughtupError ``output_unwritable`` if the store does not answer.
        """
        try:
            found = self.filesystem().get_file_info(FileSelector("", allow_not_found=True))
        except TableNotFoundError:
            return []
        except (DeltaError, OSError) as error:
            raise CaughtupError(
                "output_unwritable", f"can't read {self.uri}: {self.describe(error)}"
            ) from error
        return sorted(one.base_name for one in found)

    def describe(self, error: Exception) -> str:
        """Return the library's error in one line, without secrets of the options."""
        lines = (line.strip(" \t↳") for line in _COLOUR.sub("", str(error)).splitlines())
        text = ": ".join(line.rstrip(":") for line in lines if line) or type(error).__name__
        for name, value in self.options.items():
            if value and name not in _PUBLIC and _SECRET.search(name):
                text = text.replace(value, "***")
        return text[:_MOST_CHARACTERS]


def store_of(
    uri: str, option: Option = lambda _: None, environment: Mapping[str, str] = os.environ
) -> Store:
    """Return the store of a URI or path as in Hadoop; ``option`` returns a Hadoop option.

    Raises CaughtupError ``output_unwritable`` for a scheme that the library does not support.
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
    """Return the store of a URI, with Spark's options for Hadoop. Raises like ``store_of``."""
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
    """Return the options for Azure; Hadoop has them by account, or for all accounts."""
    account = authority.rpartition("@")[2]
    return _mapped(_AZURE, lambda name: option(f"{name}.{account}") or option(name))
