"""The last hours: figures of groups and of the cluster over time, and what happened, in bounds.

Imports models.lag and what that imports; the state has one, agents.recent fills it.
"""
