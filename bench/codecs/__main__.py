"""Compare the codecs of kafka-python, generated from Kafka's definitions, with ours.

``python -m caughtup.bench.codecs [PAIRS]``, where kafka-python 3 can be imported. Each large answer
is written by kafka-python and decoded by both, in turns, on one thread; times are its CPU time.
Prints lines of JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from caughtup.bench.codecs.large_answers import (
    LargeAnswer,
    log_dirs_answer,
    metadata_answer,
    reassignments_answer,
    topics_answer,
)

PAIRS = 7


def importing() -> dict[str, object]:
    """Import kafka-python's codecs; return CPU ms, resident MB, and the imported client modules."""
    start, resident = time.process_time(), _resident_mb()
    importlib.import_module("kafka.protocol.metadata")
    taken = time.process_time() - start
    return {
        "import_ms": round(taken * 1_000, 1),
        "import_mb": round(_resident_mb() - resident, 1),
        "modules": sum(name.split(".")[0] == "kafka" for name in sys.modules),
        "clients": sorted({"kafka.admin", "kafka.consumer", "kafka.producer"} & sys.modules.keys()),
    }


def compare(answer: LargeAnswer, pairs: int) -> dict[str, object]:
    """Decode in turns; return median CPU ms, ratios to ours, and peaks of memory in MB.

    A ratio is pair by pair: least, median, greatest; the first pair isn't counted. ``as_ours``
    includes conversion to our values. ``same``: whether both gave the same values.
    """

    def whole(data: bytes) -> object:
        return answer.as_ours(answer.theirs(data))

    rows = [
        [_milliseconds(way, answer.data) for way in (answer.ours, answer.theirs, whole)]
        for _ in range(pairs + 1)
    ][1:]
    ours, theirs, as_ours = zip(*rows, strict=True)
    return {
        "answer": answer.name,
        "bytes": len(answer.data),
        "same": answer.ours(answer.data) == whole(answer.data),
        "ours_ms": round(statistics.median(ours), 1),
        "kafka_python_ms": round(statistics.median(theirs), 1),
        "kafka_python_as_ours_ms": round(statistics.median(as_ours), 1),
        "ratio": _ratios(theirs, ours),
        "ratio_as_ours": _ratios(as_ours, ours),
        "ours_peak_mb": _peak_mb(answer.ours, answer.data),
        "kafka_python_peak_mb": _peak_mb(answer.theirs, answer.data),
    }


def failures(answer: LargeAnswer) -> dict[str, dict[str, int]]:
    """Truncate and damage an answer; count the kinds of errors that each decoder raises."""
    raised: dict[str, dict[str, int]] = {"ours": {}, "kafka_python": {}}
    for at in range(1, 2_000, 7):
        for data in (answer.data[:at], answer.data[:at] + b"\xff\xff\xff\xff" + answer.data[at:]):
            for name, way in (("ours", answer.ours), ("kafka_python", answer.theirs)):
                kind = _failure(way, data[:4_000])
                raised[name][kind] = raised[name].get(kind, 0) + 1
    return raised


def _failure(way: Callable[[bytes], object], data: bytes) -> str:
    try:
        way(data)
    except Exception as error:  # noqa: BLE001 - what is raised is what is asked
        return type(error).__name__
    return "none"


def _milliseconds(way: Callable[[bytes], object], data: bytes) -> float:
    gc.collect()
    start = time.thread_time()
    decoded = way(data)
    taken = (time.thread_time() - start) * 1_000
    del decoded
    return taken


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _peak_mb(way: Callable[[bytes], object], data: bytes) -> float:
    gc.collect()
    tracemalloc.start()
    way(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6, 1)


def _ratios(one: tuple[float, ...], other: tuple[float, ...]) -> list[float]:
    ratios = sorted(a / b for a, b in zip(one, other, strict=True))
    return [round(ratios[0], 2), round(statistics.median(ratios), 2), round(ratios[-1], 2)]


def main() -> None:
    """Compare the answers; print what importing takes, then two lines for each answer."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    print(json.dumps(importing()), flush=True)
    for answer in (metadata_answer(), topics_answer(), reassignments_answer(), log_dirs_answer()):
        print(json.dumps(compare(answer, pairs)), flush=True)
        print(json.dumps({"answer": answer.name, "errors": failures(answer)}), flush=True)


if __name__ == "__main__":
    main()
