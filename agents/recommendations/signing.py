"""Sign recommendations with a key that followers share."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError
from caughtup.models.security.signing import (
    HEADER,
    FindForgery,
    SigningKey,
    find_forgery,
    read_keys,
    sign,
)

log = logging.getLogger(__name__)

Headers = dict[str, bytes]


class Signer:
    """Signs for one cluster with the first key in a file; signs nothing without a file."""

    def __init__(self, file: Path | None, cluster: str) -> None:
        """Read the file. Raises UserError when it cannot be read or has no keys."""
        self._file = file
        self._cluster = cluster
        self._keys: tuple[SigningKey, ...] = ()
        self._failing = False
        if file is not None:
            try:
                self._keys = _keys_of(file)
            except CaughtupError as error:
                raise UserError(f"setting signing_key_file: {file}: {error.message}") from None

    def headers(self, group: str, value: bytes) -> Headers | None:
        """Return the headers for a recommendation's record; None if it is not signed.

        The file is read again each time, so that a new key is used from the next record on. If it
        cannot be read, the former key stays in use.
        """
        self._read_again()
        if not self._keys:
            return None
        return {HEADER: sign(self._keys[0], self._cluster, group, value)}

    def forgeries(self) -> FindForgery | None:
        """Return a check that finds forged records with the file's present keys; None without a file."""
        self._read_again()
        return partial(find_forgery, self._keys, self._cluster) if self._keys else None

    def _read_again(self) -> None:
        if self._file is None:
            return
        try:
            self._keys = _keys_of(self._file)
            self._failing = False
        except CaughtupError as error:
            if not self._failing:
                log.warning("%s: %s; the former key is used", self._file, error.message)
            self._failing = True


def _keys_of(file: Path) -> tuple[SigningKey, ...]:
    """Read the keys in a file. Raises CaughtupError; its message holds nothing from the file."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"it cannot be read: {type(error).__name__}"
        raise CaughtupError("bad_key_file", reason) from None
    return read_keys(text)
