"""A stranger installs the wheel and watches a cluster that had not heard of it: the whole way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stranger.play import STRANGERS, play


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_stranger_gets_from_the_wheel_to_a_watched_cluster(tmp_path: Path) -> None:
    steps = list(play(tmp_path))
    for step in steps:
        print(f"{step.seconds:6.1f} s  {step.what}")
    ready = [step for step in steps if "`caughtup run` is ready" in step.what]
    assert len(ready) == len(STRANGERS)
