"""Find and read checkpoints of Spark Structured Streaming, and apply them to the state.

Imports agents.configuration, agents.election, agents.kafka, agents.process and models; ``app`` and the command line import it.
"""
