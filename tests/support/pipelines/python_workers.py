"""Where Spark forks its Python workers in tests, at a fraction of what they cost by default.

Before each task a worker reads the directories of zip files anew, for each package that it imported
from one, and after each task it searches all that it has imported for garbage: together a fifth of
a second of a processor. Here pyspark is the installed one, not its zip file, and what tasks import
is imported before workers are forked, where no search sees it.

``python -m tests.support.pipelines.python_workers`` is for ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
import importlib
import sys
from pathlib import Path

#: Modules that hold functions of the jobs' tasks.
_IMPORTED = (
    "caughtup.agents.kafka.log_ranges",
    "caughtup.pipelines.history.batch",
    "caughtup.pipelines.replay.job",
)


if __name__ == "__main__":
    # pyspark.zip, py4j's and a jar of Spark's, in which everything would be looked for first.
    for archive in [entry for entry in sys.path if Path(entry).is_file()]:
        sys.path.remove(archive)
        sys.path_importer_cache.pop(archive, None)
    for module in _IMPORTED:
        importlib.import_module(module)
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()
