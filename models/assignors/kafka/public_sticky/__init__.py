"""The public StickyTaskAssignor (KIP-924).

Imports kafka.stickiness and kafka.racks; the registry imports it.
"""
