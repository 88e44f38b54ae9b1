"""Spark Structured Streaming queries by their checkpoints: what a look at one tells, and all of them.

Imports records, clocks and ids; state and agents.checkpoints import it.
"""
