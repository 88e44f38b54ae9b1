"""The stores in which checkpoints are: local folders, or a store that pyarrow can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from caughtup.models.errors import CaughtupError
from caughtup.models.spark_queries import Entry

#: The most names in one folder. By default Spark keeps the last 100 batches of a log.
_MOST_ENTRIES = 100_000
#: The argument of pyarrow's S3FileSystem for each variable.
_S3 = {
    "AWS_ACCESS_KEY_ID": "access_key",
    "AWS_SECRET_ACCESS_KEY": "secret_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_REGION": "region",
}


class FolderEntry(NamedTuple):
    """A file or folder in a folder. Links are left out."""

    name: str
    is_folder: bool


class CheckpointStore(Protocol):
    """Reads files by path. Calls block, and raise OSError; FileNotFoundError for a missing path."""

    def entries(self, path: str) -> list[FolderEntry]:
        """List a folder. Raises CaughtupError ``too_many`` for more than 100,000 entries."""
        ...

    def read(self, path: str, most_bytes: int) -> bytes:
        """Return a file's content, of a larger file only the first ``most_bytes`` + 1 bytes."""
        ...

    def modified_ms(self, path: str) -> int | None:
        """Return when a file was last modified (ms); None if the store does not know."""
        ...

    def shown(self, path: str) -> str:
        """Return a path as it is shown to users."""
        ...


class LocalStore:
    """Local folders. Only regular files are read, and links below a folder are not followed."""

    def entries(self, path: str) -> list[FolderEntry]:
        """List a folder."""
        with os.scandir(path) as found:
            some = list(islice(found, _MOST_ENTRIES + 1))
        _require_few(len(some), path)
        return [
            FolderEntry(one.name, is_folder)
            for one in some
            if (is_folder := one.is_dir(follow_symlinks=False))
            or one.is_file(follow_symlinks=False)
        ]

    def read(self, path: str, most_bytes: int) -> bytes:
        """Return a file's content. Raises CaughtupError ``no_file`` if it is no regular file."""
        # O_NONBLOCK: opening a pipe would block.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise CaughtupError("no_file", f"{path} is not a plain file")
            return file.read(most_bytes + 1)

    def modified_ms(self, path: str) -> int | None:
        """Return when a file was last modified (ms)."""
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000

    def shown(self, path: str) -> str:
        """Return the path itself."""
        return writable(path)


class ArrowStore:
    """A store that pyarrow opens by a URI, with credentials from the environment.

    For S3, ``variables`` override the environment. ``root`` is the path in the store.
    """

    def __init__(self, uri: str, variables: Mapping[str, str] | None = None) -> None:
        try:
            from pyarrow import fs  # of the extra ``spark``, and slow to import
        except ImportError as error:
            raise CaughtupError(
                "no_pyarrow", f"{uri} needs pyarrow: pip install 'caughtup[spark]'"
            ) from error
        scheme, _, rest = uri.partition("://")
        if variables:
            parts = urlsplit(uri)
            self.root = f"{parts.netloc}{unquote(parts.path)}"  # as from_uri has it
            self._fs = fs.S3FileSystem(
                **{**_s3_arguments(variables), **dict(parse_qsl(parts.query))}
            )
        else:
            self._fs, self.root = fs.FileSystem.from_uri(f"{scheme.replace('s3a', 's3')}://{rest}")
        self._files, self._selector = fs.FileType, fs.FileSelector
        self._scheme = scheme

    def entries(self, path: str) -> list[FolderEntry]:
        """List a folder."""
        some = self._fs.get_file_info(self._selector(path))
        _require_few(len(some), path)
        return [
            FolderEntry(one.base_name, one.type == self._files.Directory)
            for one in some
            if one.type in (self._files.Directory, self._files.File)
        ]

    def read(self, path: str, most_bytes: int) -> bytes:
        """Return a file's content."""
        with self._fs.open_input_stream(path) as file:
            return bytes(file.read(most_bytes + 1))

    def modified_ms(self, path: str) -> int | None:
        """Return when a file was last modified (ms)."""
        at_ns = self._fs.get_file_info(path).mtime_ns
        return None if at_ns is None else at_ns // 1_000_000

    def shown(self, path: str) -> str:
        """Return the path as a URI."""
        return f"{self._scheme}://{path}"


def open_store(entry: Entry, s3: Mapping[str, str]) -> tuple[CheckpointStore, str]:
    """Open the store of a setting's entry; return it with the path in it.

    ``s3`` has the variables for S3 that are set. Raises CaughtupError ``no_pyarrow``, OSError, or
    ValueError if pyarrow cannot parse the URI.
    """
    if entry.scheme == "file":
        return LocalStore(), entry.local_path
    store = ArrowStore(entry.uri, s3 if entry.is_s3 else None)
    return store, store.root.rstrip("/")


def _s3_arguments(variables: Mapping[str, str]) -> dict[str, str]:
    found = {_S3[name]: value for name, value in variables.items() if name in _S3}
    if endpoint := variables.get("AWS_ENDPOINT_URL"):
        found["scheme"], _, address = endpoint.rstrip("/").partition("://")
        found["endpoint_override"] = address
    return found


def writable(text: str) -> str:
    """Return text with unencodable characters escaped: file names may be any bytes."""
    return text.encode(errors="backslashreplace").decode()


def _require_few(count: int, path: str) -> None:
    if count > _MOST_ENTRIES:
        raise CaughtupError("too_many", f"more than {_MOST_ENTRIES:,} files in {path}")
