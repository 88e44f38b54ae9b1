"""Find and read checkpoints; one that cannot be read affects only its own query."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from caughtup.agents.checkpoints.stores import CheckpointStore, open_store, writable
from caughtup.agents.errors import UserError
from caughtup.models.errors import CaughtupError, error_code
from caughtup.models.ids import TopicPartition
from caughtup.models.records.decoding import BAD_JSON, RefusedError
from caughtup.models.records.fields import MOST_GROUP_BYTES
from caughtup.models.records.spark_checkpoint_files import (
    MOST_BYTES,
    MOST_ID_BYTES,
    MOST_SOURCES,
    decode_batch_end,
    decode_first_offsets,
    decode_query_id,
    is_commit,
)
from caughtup.models.spark_queries import (
    BEGINNING,
    GROUP_PREFIX,
    CommittedBatch,
    Entry,
    KnownCheckpoint,
    Look,
    Looks,
    Problem,
    batch_numbers,
    batches_to_read,
    commit_ms,
    last_committed,
    read_entry,
)

#: How deep below a folder checkpoints are searched for, and in how many folders.
_MOST_DEEP = 3
_MOST_FOLDERS = 10_000
#: The most checkpoints that are read; more are reported as a problem of their folder.
_MOST_QUERIES = 1_000


class CheckpointPlace(NamedTuple):
    """A checkpoint: the group as which its query is shown, and its path in the store.

    With an ``error``, the path is a folder that could not be listed, and may have checkpoints.
    """

    group: str
    path: str
    error: Exception | None = None


def find_checkpoints(
    store: CheckpointStore, root: str, name: str | None
) -> Iterator[CheckpointPlace]:
    """Yield the checkpoints at or under a folder, sorted within each folder.

    Links are not followed. A query is named after its checkpoint's path below the folder, with
    ``name`` in front if given; or after the folder if that itself is the checkpoint.
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
        except Exception as error:  # noqa: BLE001 - must not affect other folders
            yield CheckpointPlace(
                GROUP_PREFIX + called, root if looked > _MOST_FOLDERS else path, error
            )
            if looked > _MOST_FOLDERS:
                return
            continue
        folders = sorted(one.name for one in entries if one.is_folder)
        if "offsets" in folders and any(
            one.name == "metadata" and not one.is_folder for one in entries
        ):
            yield CheckpointPlace(GROUP_PREFIX + called, path)
        elif depth < _MOST_DEEP:
            waiting += [
                (f"{path}/{folder}", f"{below}/{folder}".lstrip("/"), depth + 1)
                for folder in folders
            ]


class CheckpointLooks:
    """Reads the checkpoints that a setting's entries name.

    ``s3`` returns the variables for S3, which may change; its errors are problems of the entries on
    S3. The constructor raises ValueError for a malformed entry.
    """

    def __init__(self, entries: Iterable[str], s3: Callable[[], Mapping[str, str]] = dict) -> None:
        self._entries = tuple(map(read_entry, entries))
        self._s3 = s3
        self._variables: Mapping[str, str] = {}
        self._stores: dict[Entry, tuple[CheckpointStore, str]] = {}

    def look(self, known: Mapping[str, KnownCheckpoint], now_ms: int) -> Looks:
        """Read all checkpoints: the batches since those that are ``known``, by group.

        ``now_ms`` is the time (ms). Blocks. Raises nothing.
        """
        found = Looks({}, {})
        for entry in self._entries:
            try:
                store, root = self._opened(entry)
            except Exception as error:  # noqa: BLE001 - must not affect other entries
                found.problems[entry.place] = _problem(error)
                continue
            self._look_under(found, store, root, entry.name, known, now_ms)
        return found

    def _opened(self, entry: Entry) -> tuple[CheckpointStore, str]:
        if entry.is_s3 and (variables := self._s3()) != self._variables:
            self._variables = variables
            self._stores = {of: one for of, one in self._stores.items() if not of.is_s3}
        if entry not in self._stores:
            self._stores[entry] = open_store(entry, self._variables)
        return self._stores[entry]

    def _look_under(
        self,
        found: Looks,
        store: CheckpointStore,
        root: str,
        name: str | None,
        known: Mapping[str, KnownCheckpoint],
        now_ms: int,
    ) -> None:
        for group, path, unlisted in find_checkpoints(store, root, name):
            shown = store.shown(path)
            if len(found.queries) + len(found.problems) >= _MOST_QUERIES:
                found.problems[store.shown(root)] = Problem(
                    "too_many", f"more than {_MOST_QUERIES:,} checkpoints"
                )
                return
            try:
                if unlisted is not None:
                    raise unlisted
                taken = found.queries.get(group)
                if taken is not None and taken[0] != shown:
                    message = f"the name {group} is taken by {taken[0]}: give this one another name, NAME={shown}"
                    raise RefusedError("name_taken", message)
                look = read_query(store, path, known.get(group), now_ms)
                if look is not None:
                    found.queries[group] = shown, look
            except FileNotFoundError as error:
                if path == root:  # any other was listed just before, and is being deleted
                    found.problems[shown] = Problem("not_found", str(error.strerror or error))
            except Exception as error:  # noqa: BLE001 - must not affect other queries
                found.problems[shown] = _problem(error)


def _problem(error: Exception) -> Problem:
    reason = "unreadable" if isinstance(error, OSError | UserError) else error_code(error)
    message = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)
    return Problem(reason, writable(" ".join(str(message).split())[:500]))


def read_query(
    store: CheckpointStore, path: str, known: KnownCheckpoint | None, now_ms: int
) -> Look | None:
    """Read a checkpoint; return None if its query does not read Kafka.

    Raises RefusedError for files that Spark would not write, and what the store raises.
    """
    query_id = decode_query_id(store.read(f"{path}/metadata", MOST_ID_BYTES))
    offsets = batch_numbers(one.name for one in store.entries(f"{path}/offsets"))
    commits = batch_numbers(_names(store, f"{path}/commits"))
    newest, started, started_ms = last_committed(offsets, commits), max(offsets, default=None), None
    if started is not None and (newest is None or started > newest):
        started_ms = decode_batch_end(store.read(f"{path}/offsets/{started}", MOST_BYTES)).at_ms
    else:
        started = None
    same = known is not None and known.query_id == query_id
    since = known.newest if same and known is not None else None
    if newest is None:
        return _beginning(store, path, Look(query_id, None, (), started, started_ms), since, now_ms)
    if since is not None and since > newest:
        since = None
    batches: list[CommittedBatch] = []
    for number in batches_to_read(offsets, commits, since):
        batch = _batch(store, path, number, now_ms, last=number == newest)
        if batch is not None:
            earliest = batches[-1].at_ms if batches else 0
            batches.append(batch._replace(at_ms=max(batch.at_ms, earliest)))
    if batches and not batches[-1].offsets and not any(_first_offsets(store, path)):
        return None
    return Look(query_id, newest, tuple(batches), started, started_ms)


def _batch(
    store: CheckpointStore, path: str, number: int, now_ms: int, *, last: bool
) -> CommittedBatch | None:
    """Read a committed batch; return None if Spark has deleted it since the listing."""
    try:
        if not is_commit(store.read(f"{path}/commits/{number}", 1)):
            raise RefusedError(BAD_JSON, f"commits/{number} is empty, or is not a commit")
        ended = decode_batch_end(store.read(f"{path}/offsets/{number}", MOST_BYTES))
        written_ms = store.modified_ms(f"{path}/commits/{number}")
    except FileNotFoundError:
        if last:
            raise
        return None
    return CommittedBatch(number, ended.offsets, commit_ms(ended.at_ms, written_ms, now_ms))


def _beginning(
    store: CheckpointStore, path: str, nothing: Look, since: int | None, now_ms: int
) -> Look | None:
    """Return the first offsets of a query without a batch; None if it does not read Kafka."""
    first: dict[TopicPartition, int] = {}
    for offsets in _first_offsets(store, path):
        for partition, offset in offsets.items():
            first[partition] = min(offset, first.get(partition, offset))
    if not first:
        return (
            None if nothing.started is None or not _reads_kafka(store, path, nothing) else nothing
        )
    if since == BEGINNING:
        return nothing._replace(newest=BEGINNING)
    return nothing._replace(newest=BEGINNING, batches=(CommittedBatch(BEGINNING, first, now_ms),))


def _reads_kafka(store: CheckpointStore, path: str, look: Look) -> bool:
    ended = decode_batch_end(store.read(f"{path}/offsets/{look.started}", MOST_BYTES))
    return ended.sources > 0


def _first_offsets(store: CheckpointStore, path: str) -> Iterable[Mapping[TopicPartition, int]]:
    """Yield the first offsets of each Kafka source, if Spark still keeps them."""
    for number in sorted(batch_numbers(_names(store, f"{path}/sources")))[:MOST_SOURCES]:
        try:
            value = store.read(f"{path}/sources/{number}/0", MOST_BYTES)
        except FileNotFoundError:
            continue
        offsets = decode_first_offsets(value)
        if offsets is not None:
            yield offsets


def _names(store: CheckpointStore, path: str) -> list[str]:
    try:
        return [one.name for one in store.entries(path)]
    except FileNotFoundError:
        return []
