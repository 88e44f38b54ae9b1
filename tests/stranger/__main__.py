"""Play the stranger, and print what each step took: ``python -m tests.stranger``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.stranger.play import play

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="caughtup-stranger-") as directory:
        for step in play(Path(directory)):
            print(f"{step.seconds:6.1f} s  {step.what}", flush=True)
    sys.exit(0)
