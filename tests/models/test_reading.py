"""Progress through a long log."""

from __future__ import annotations

from caughtup.models.reading import ReadingProgress


def test_it_says_how_much_is_done_how_fast_and_how_long_it_takes() -> None:
    progress = ReadingProgress(total=1_000_000, started_ms=5_000)
    progress.behind, progress.records = 750_000, 100_000
    assert progress.seconds_left(7_000) == 6.0
    assert progress.line(7_000) == "25 %, 100,000 records in 2.0 s (50,000/s), about 6 s left"


def test_before_anything_was_read_nobody_knows_how_long_it_takes() -> None:
    progress = ReadingProgress(total=10, started_ms=5_000)
    assert progress.seconds_left(5_000) is None
    assert "left" not in progress.line(5_000)


def test_an_empty_log_is_read_at_once() -> None:
    assert ReadingProgress(total=0, started_ms=5_000).line(5_000).startswith("100 %")
