"""Spark Structured Streaming queries, by their checkpoints.

Imports records, clocks and ids; state and agents.checkpoints import it.
"""
