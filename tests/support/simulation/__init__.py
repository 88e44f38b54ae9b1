"""Groups and copies on a clock that the test moves, and rules for comparison."""
