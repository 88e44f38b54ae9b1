"""``make pictures``: make every picture of README and docs from simulated clusters."""
