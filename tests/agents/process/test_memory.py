"""A memory limit that is too low, or nearly used, is said before the system kills the process."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from caughtup.agents.memory_watch import MemoryWatch
from caughtup.agents.process.health import Health
from caughtup.agents.process.memory import (
    LEAST_BYTES,
    limit_bytes,
    nearly_used,
    too_little,
    used_bytes,
)

#: A process's line for each version of control groups, and the files that have limits.
LAYOUTS = [
    ("0::/pod/service", {"pod/service/memory.max": "200000000\n"}, 200_000_000),
    ("0::/pod/service", {"pod/service/memory.max": "max\n", "pod/memory.max": "300000000\n"}, 300_000_000),
    ("0::/pod/service", {"pod/service/memory.max": "9", "pod/memory.max": "8"}, 8),
    ("0::/", {"memory.max": "5000"}, 5_000),
    ("0::/gone/from/here", {"memory.max": "5000"}, 5_000),
    ("4:memory:/x", {"memory/x/memory.limit_in_bytes": "777"}, 777),
    ("4:cpu,memory:/x", {"memory/x/memory.limit_in_bytes": "777"}, 777),
    ("4:memory:/x", {"memory/memory.limit_in_bytes": "9223372036854771712"}, None),
    ("4:cpu:/x", {"memory/x/memory.limit_in_bytes": "777"}, None),
    ("0::/x", {"x/memory.max": "max"}, None),
    ("0::/x", {"x/memory.max": "-1"}, None),
    ("0::/x", {"x/memory.max": "9" * 5_000}, None),
    ("0::/x", {"x/memory.max": "٣"}, None),
    ("", {}, None),
    ("nonsense", {}, None),
    ("0::/../../..", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "files", "limit"), LAYOUTS)
def test_the_lowest_limit_of_all_groups_counts(
    line: str, files: dict[str, str], limit: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(line + "\n")
    groups = tmp_path / "groups"
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text)
    assert limit_bytes(tmp_path, groups) == limit


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert limit_bytes(tmp_path, tmp_path) is None
    assert used_bytes(tmp_path) is None


def test_this_process_uses_memory() -> None:
    used = used_bytes()
    assert used is not None
    assert 1_000_000 < used < 100_000_000_000


def test_a_limit_below_need_is_named_with_both_figures() -> None:
    problem = too_little(64_000_000)
    assert problem is not None
    assert "64 MB" in problem
    assert f"{LEAST_BYTES // 1_000_000} MB" in problem
    assert too_little(LEAST_BYTES) is None
    assert too_little(None) is None


def test_it_is_near_from_nine_tenths_on() -> None:
    assert nearly_used(89, 100) is None
    assert nearly_used(90, 100) is not None
    assert nearly_used(None, 100) is None
    assert nearly_used(90, None) is None


def test_nearing_the_limit_is_logged_once_and_stays_a_notice_until_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health, used = Health(ready=True), [100_000_000]
    watch = MemoryWatch(health, lambda: 200_000_000, lambda: used[0])
    with caplog.at_level(logging.WARNING):
        watch.look()
        assert (health.notices(), caplog.messages) == ([], [])
        used[0] = 190_000_000
        watch.look()
        watch.look()
    (message,) = caplog.messages
    assert "190 MB of the limit of 200 MB" in message
    assert health.notices() == [message]
    assert health.unready() == []
    used[0] = 100_000_000
    watch.look()
    assert health.notices() == []
