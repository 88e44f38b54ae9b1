"""What a compaction is doing to one folder, written down so that another run can end it.

Two files stand below ``_compactions``. The first says which files are replaced; it is there before
anything else is done. The second says which new ones replace them, and is there once those are
whole, and counted, in the staging directory. Without it a compaction is undone, with it finished.
So there is no moment at which a row is in no file.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.compaction.plan import FolderCompaction
from caughtup.pipelines.compaction.sized_files import SizedFiles
from caughtup.pipelines.history.table_writer import STAGING

JOURNALS = "_compactions"
_SCHEMA = 1
_OLD, _NEW = ".old.json", ".new.json"


class NewFile(msgspec.Struct):
    """A new file: its name in the staging directory, the one that it gets, its size in bytes."""

    staged: str
    name: str
    bytes: int


class _Old(msgspec.Struct):
    schema: int
    folder: str
    files: dict[str, int]


class _New(msgspec.Struct):
    schema: int
    files: list[NewFile]


_T = TypeVar("_T", _Old, _New)


class Compaction:
    """One folder's compaction, by its journal's name; ``root`` is the history's directory."""

    def __init__(self, files: SizedFiles, root: str, name: str) -> None:
        self._files = files
        self._root = root
        self.name = name
        self._journal = f"{root}/{JOURNALS}/{name}"
        self.staging = f"{root}/{STAGING}/{JOURNALS.strip('_')}-{name}"

    @classmethod
    def begin(cls, files: SizedFiles, root: str, plan: FolderCompaction) -> Compaction:
        """Write down which files are replaced.

        Raises CaughtupError ``compaction_runs`` where another run has just done the same.
        """
        name = journal_prefix(plan.folder) + plan.prefix
        begun = cls(files, root, name)
        if files.exists(begun._journal + _OLD):
            raise CaughtupError("compaction_runs", f"another compaction is at {plan.folder}")
        begun._write(_OLD, _Old(_SCHEMA, plan.folder, dict(plan.old)))
        return begun

    def written(self, new: list[NewFile]) -> None:
        """Write down which files replace them: they are whole, and nothing of them is missing."""
        self._write(_NEW, _New(_SCHEMA, new))

    def undo(self) -> None:
        """Forget a compaction whose new files aren't whole yet."""
        self._end()

    def settle(self) -> str:
        """End a compaction, and say how, ``finished`` or ``undone``.

        Raises CaughtupError ``bad_journal`` where it can't be told what it was doing,
        ``rows_missing`` where the files themselves are gone, and ``name_taken`` where others have
        their names. No file with rows is deleted then.
        """
        old = self._read(_OLD, _Old)
        if not self._files.exists(self._journal + _NEW):
            self._end()
            return "undone"
        new = self._read(_NEW, _New).files
        folder = f"{self._root}/{old.folder}"
        # In this order: whoever else is at it moves files from the one place to the other.
        staged = {one.name for one in new if self._is_whole(f"{self.staging}/{one.staged}", one)}
        missing = [one for one in new if not self._is_whole(f"{folder}/{one.name}", one)]
        if any(one.name not in staged for one in missing):
            return self._take_back(old, new)
        for one in missing:
            self._files.put(f"{self.staging}/{one.staged}", f"{folder}/{one.name}")
        for one in new:
            if not self._is_whole(f"{folder}/{one.name}", one):
                raise CaughtupError("name_taken", f"{folder}/{one.name} is another file")
        for name in sorted(old.files):
            self._files.delete(f"{folder}/{name}")
        self._end()
        return "finished"

    def _take_back(self, old: _Old, new: list[NewFile]) -> str:
        folder = f"{self._root}/{old.folder}"
        gone = [name for name in sorted(old.files) if not self._files.exists(f"{folder}/{name}")]
        if gone:
            raise CaughtupError(
                "rows_missing",
                f"{folder}/{gone[0]} is gone, and what was to replace it isn't whole",
            )
        for one in new:
            if self._is_whole(f"{folder}/{one.name}", one):
                self._files.delete(f"{folder}/{one.name}")
        self._end()
        return "undone"

    def _is_whole(self, path: str, one: NewFile) -> bool:
        return self._files.size(path) == one.bytes

    def _end(self) -> None:
        self._files.delete(self.staging)
        self._files.delete(self._journal + _NEW)
        self._files.delete(self._journal + _OLD)

    def _write(self, ending: str, content: msgspec.Struct) -> None:
        self._files.write(self._journal + ending, msgspec.json.encode(content))

    def _read(self, ending: str, kind: type[_T]) -> _T:
        path = self._journal + ending
        try:
            found = msgspec.json.decode(self._files.read(path), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CaughtupError("bad_journal", f"can't read {path}: {error}") from error
        if found.schema != _SCHEMA:
            raise CaughtupError("bad_journal", f"{path} is a later release's")
        return found


def journal_prefix(folder: str) -> str:
    """Return what the names of a folder's compactions begin with."""
    return folder.replace("/", ".") + "."


def left_behind(files: SizedFiles, root: str) -> list[Compaction]:
    """Return the compactions that an earlier run began and didn't end, in order."""
    names = files.names(f"{root}/{JOURNALS}")
    for name in names:
        if name.startswith("_"):  # was being written
            files.delete(f"{root}/{JOURNALS}/{name}")
    return [
        Compaction(files, root, name.removesuffix(_OLD))
        for name in names
        if name.endswith(_OLD) and not name.startswith("_")
    ]
