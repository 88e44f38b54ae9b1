"""The assignor whose decisions caughtup recommends: the fewest movements within Kafka's bounds.

Imports models.assignment and kafka.racks; the registry imports it.
"""
