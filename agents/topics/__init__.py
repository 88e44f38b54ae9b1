"""caughtup's own topics: their configs, reading them without a group, writing to them.

Imports agents.kafka and agents.process; agents import it.
"""
