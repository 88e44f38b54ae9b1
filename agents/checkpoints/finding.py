"""Finds checkpoints: a folder that is one, or those under it, each with the name of its group."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.agents.checkpoints.stores import Store
from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import MOST_GROUP_BYTES
from caughtup.models.spark_queries.look import GROUP_PREFIX

#: How deep below a folder checkpoints are looked for, and in how many folders.
_MOST_DEEP = 3
_MOST_FOLDERS = 10_000


class Place(NamedTuple):
    """A checkpoint: the group that its query is shown as, and its path in its store.

    ``error`` is why a folder can't be listed: then it isn't known whether there is any below it.
    """

    group: str
    path: str
    error: Exception | None = None


def find(store: Store, root: str, name: str | None) -> Iterator[Place]:
    """Yield the checkpoints at or under a folder, sorted in each; links aren't followed.

    A query is called by its checkpoint's path below the folder, after ``name`` if there is one;
    by the folder's own name if the folder itself is the checkpoint.
    """
    waiting = deque([(root, "", 0)])
    looked = 0
    while waiting:
        path, below, depth = waiting.popleft()
        called = "/".join(filter(None, (name, below))) or root.rpartition("/")[2]
        looked += 1
        try:
            if looked > _MOST_FOLDERS:
                raise CaughtupError("too_many", f"more than {_MOST_FOLDERS:,} folders")
            entries = store.entries(path)
            if len(called.encode()) > MOST_GROUP_BYTES - len(GROUP_PREFIX):
                raise CaughtupError("too_large", "its path is too long for the name of a group")
        except Exception as error:  # noqa: BLE001 - a folder that can't be listed costs itself
            yield Place(GROUP_PREFIX + called, root if looked > _MOST_FOLDERS else path, error)
            if looked > _MOST_FOLDERS:
                return
            continue
        folders = sorted(one.name for one in entries if one.is_folder)
        if "offsets" in folders and any(
            one.name == "metadata" and not one.is_folder for one in entries
        ):
            yield Place(GROUP_PREFIX + called, path)
        elif depth < _MOST_DEEP:
            waiting += [
                (f"{path}/{folder}", f"{below}/{folder}".lstrip("/"), depth + 1)
                for folder in folders
            ]
