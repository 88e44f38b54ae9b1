"""A part stands still while the watchdog ticks and it doesn't beat; time alone proves nothing."""

from __future__ import annotations

from caughtup.agents.process.pulses import Pulses


def test_ticks_without_a_beat_are_counted_by_part() -> None:
    pulses = Pulses()
    assert pulses.tick() == {}
    pulses.beat("loop")
    pulses.beat("reader")
    assert pulses.tick() == {"loop": 0, "reader": 0}
    pulses.beat("loop")
    assert pulses.tick() == {"loop": 0, "reader": 1}
    assert pulses.tick() == {"loop": 1, "reader": 2}
    pulses.beat("reader")
    pulses.beat("reader")
    assert pulses.tick() == {"loop": 2, "reader": 0}


def test_a_part_that_rests_is_not_watched_until_it_beats_again() -> None:
    pulses = Pulses()
    pulses.beat("loop")
    pulses.tick()
    pulses.tick()
    pulses.rest("loop")
    pulses.rest("nobody")
    assert pulses.tick() == {}
    pulses.beat("loop")
    assert pulses.tick() == {"loop": 0}
    assert pulses.tick() == {"loop": 1}
