"""A setting's entry for a checkpoint, or a folder of them: ``[NAME=]URI``."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

#: The URI schemes of stores that are read by pyarrow, which is in the extra ``spark``.
ARROW_SCHEMES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")


class Entry(NamedTuple):
    """A checkpoint, or a folder of them.

    ``name`` is the name of its queries, None for the folder's.
    """

    name: str | None
    uri: str

    @property
    def scheme(self) -> str:
        """The URI's scheme; ``file`` for a path."""
        return "file" if self.uri.startswith("/") else self.uri.partition(":")[0]

    @property
    def place(self) -> str:
        """The URI without its options for pyarrow; the paths of checkpoints begin with it."""
        return self.uri if self.scheme == "file" else self.uri.partition("?")[0].rstrip("/")

    @property
    def is_s3(self) -> bool:
        """Whether it is in an S3 store."""
        return self.scheme in ("s3", "s3a")

    @property
    def local_path(self) -> str:
        """The path of ``file:///path``, ``file:/path`` or ``/path``, as Hadoop reads them."""
        path = self.uri.removeprefix("file:")
        if path.startswith("//"):
            path = path[2:][path[2:].find("/") :]
        return path.rstrip("/") or "/"


def read_entry(text: str) -> Entry:
    """Read an entry. Raises ValueError, whose message has no password in it."""
    name, equals, uri = text.partition("=")
    if not equals or "/" in name or ":" in name:
        name, uri = "", text
    elif not name.strip():
        raise ValueError("has no name before its =")
    entry = Entry(name.strip() or None, uri.strip())
    if not entry.uri.startswith("/") and not entry.uri.partition(":")[2].startswith("/"):
        raise ValueError("is not [NAME=]URI, nor [NAME=]/FOLDER")
    if entry.scheme not in ("file", *ARROW_SCHEMES):
        known = ", ".join(ARROW_SCHEMES)
        raise ValueError(f"is of {entry.scheme}:, which can't be read; file: and {known}: can")
    if urlsplit(entry.uri).password is not None:
        raise ValueError("has a password in it, which would be shown")
    return entry
