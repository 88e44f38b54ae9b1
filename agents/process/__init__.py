"""The process's own health, pulses, supervision, turns and garbage collection.

Imports errors and clock of agents; nearly everything imports it.
"""
