"""Kafka's internal StickyTaskAssignor and FallbackPriorTaskAssignor.

Imports kafka.stickiness and kafka.racks; the registry imports it.
"""
