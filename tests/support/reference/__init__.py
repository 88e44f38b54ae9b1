"""``make reference``: write docs/reference/ from the code's settings, metrics and commands."""
