"""The election of the active one among several instances.

Imports agents.kafka and agents.process; agents that publish import it.
"""
