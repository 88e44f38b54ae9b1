"""Checks a recommendation's signature against a file of keys that the service has, too."""

from __future__ import annotations

from pathlib import Path

from caughtup.models.assignors.following.recommendation import Objection
from caughtup.models.errors import CaughtupError
from caughtup.models.security import signing

_MOST_FILE_BYTES = 1 << 16


def find_forgery(
    file: str | Path, cluster: str, group: str, value: bytes, header: bytes | None
) -> Objection | None:
    """Return why a record isn't taken for the service's own, None when it is.

    The file is read as it is now, so that keys can change while the application runs.
    """
    try:
        keys = _read_keys(Path(file))
    except CaughtupError as error:
        message = f"signing_key_file names no file of keys: {error.message}"
        return Objection("no_signing_key", message)
    return signing.find_forgery(keys, cluster, group, value, header)


def _read_keys(file: Path) -> tuple[signing.SigningKey, ...]:
    """Read them. Raises CaughtupError, whose message has nothing that is in the file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_FILE_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"it cannot be read: {type(error).__name__}"
        raise CaughtupError("bad_key_file", reason) from None
    if len(data) > _MOST_FILE_BYTES:
        raise CaughtupError("bad_key_file", f"it is larger than {_MOST_FILE_BYTES} bytes")
    return signing.read_keys(text)
