"""``caughtup run`` that writes down its loop's turns: ``python -m … FILE run --config …``.

Every five seconds a line of JSON: the longest turn since the last one, in seconds of CPU time of
the loop's own thread, and what it was.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from caughtup.agents.main import main
from caughtup.bench.loop.turns import LoopTurns

EVERY_SECONDS = 5.0


def _write(turns: LoopTurns, file: Path) -> None:
    while True:
        time.sleep(EVERY_SECONDS)
        longest = turns.longest
        turns.reset()
        line = {"at": time.time(), "seconds": longest.seconds, "what": longest.what}
        with file.open("a") as lines:
            lines.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    _file = Path(sys.argv.pop(1))
    # The loop runs in this thread.
    with LoopTurns() as _turns:
        threading.Thread(target=_write, args=(_turns, _file), daemon=True).start()
        main()
