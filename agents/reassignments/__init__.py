"""The agent that takes observations of reassignments, and the probe that publishes them.

Imports agents.probes and agents.topics; ``app`` and the command line import it.
"""
