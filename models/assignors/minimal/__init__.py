"""The recommendation: the fewest movements within Kafka's bounds.

Imports models.assignment and kafka.racks; the registry imports it.
"""
