"""How copies of tasks catch up: rates, warm-ups, probing rebalances, time left.

Imports decisions and histories; the state and the shell import it.
"""
