"""Files whose sizes matter, at any URI that Hadoop knows."""

from __future__ import annotations

from caughtup.pipelines.spark.files import Files


class SizedFiles(Files):
    """Files, with their sizes."""

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes, None if there is none."""
        system, at = self._at(path)
        return int(system.getFileStatus(at).getLen()) if system.exists(at) else None

    def sizes(self, path: str) -> dict[str, int]:
        """Return the sizes, in bytes, of the files right in a directory, by name in their order."""
        system, at = self._at(path)
        found = [one for one in system.listStatus(at) if one.isFile()]
        return dict(sorted((str(one.getPath().getName()), int(one.getLen())) for one in found))

    def folders(self, path: str) -> list[str]:
        """Name the directories right in a directory, in order."""
        system, at = self._at(path)
        found = [one for one in system.listStatus(at) if one.isDirectory()]
        return sorted(str(one.getPath().getName()) for one in found)
