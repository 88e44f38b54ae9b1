"""Checkpoints of Spark Structured Streaming: found, read on a thread, and applied to the state.

Imports agents.configuration, agents.election, agents.kafka, agents.process and models; ``app`` and the command line import it.
"""
