"""The last hours, in bounded memory: figures of groups and of the cluster over time, and events.

Imports models.lag and what that imports; the state has one, agents.recent fills it.
"""
