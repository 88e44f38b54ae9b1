"""Connect groups: a service reads their worker clusters' topics, another decides generations again.

Imports agents.topics and agents.process; ``app`` and the command line import it.
"""
