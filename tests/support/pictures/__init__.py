"""``make pictures``: every picture of README and docs, made anew from played clusters."""
