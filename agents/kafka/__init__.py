"""Connections to brokers: client configs, ``__consumer_offsets``, end offsets.

Imports settings, errors and clock of agents; knows no topic of ours, and agents import it.
"""
