"""Which of several instances is the active one.

Imports agents.kafka and agents.process; agents that publish import it.
"""
