"""Whatever talks to brokers: client configs, the log of offsets, log end offsets.

Imports settings, errors and clock of agents; knows no topic of ours, and agents import it.
"""
