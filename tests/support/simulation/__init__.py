"""Groups and copies on a clock that only the test moves, and rules to compare with."""
