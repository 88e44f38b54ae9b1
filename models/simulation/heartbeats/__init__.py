"""Groups whose coordinator assigns, in virtual time: heartbeats, epochs and reconciliation.

Imports nothing of models but simulation's own; streams imports it.
"""
